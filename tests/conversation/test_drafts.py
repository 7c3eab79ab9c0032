"""A draft that was not wanted leaves nothing: no token in the past, no page, no word of it in the next answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.build import Parts, converse
from assistant.conversation.conversation import Conversation
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.turns import Prompt
from assistant.conversation.workers import InlineWorkers
from assistant.personas import load_persona
from assistant.replay import VirtualClock
from tests.loaded import loaded


@pytest.fixture
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    return loaded(smollm2_path, whisper_path, piper_path)


@pytest.fixture
def conversation(parts: Parts) -> Iterator[Conversation]:
    running = converse(parts, load_persona("default"), InlineWorkers(), VirtualClock().now)
    yield running
    running.close()


def held(parts: Parts) -> list[int]:
    return [pool.held for pool in parts.engine.stats.pools]


@pytest.mark.parametrize("steps", [0, 1, 100], ids=["at once", "in the middle", "when it is done"])
def test_a_dropped_draft_leaves_nothing(parts: Parts, conversation: Conversation, steps: int) -> None:
    dialogue = conversation._dialogue
    dialogue.listen("What is the capital")
    past, tail, pages = list(dialogue.base.ids), list(dialogue._tail.ids), held(parts)
    sessions = len(parts.engine.scheduler.slots)
    for _ in range(3):
        draft = dialogue.draft(Prompt("What is the capital of Spain?"))
        step = None
        for _ in range(steps):
            step = draft.reply.step()
            if step.finished:
                break
        assert len(parts.engine.scheduler.slots) == sessions + 1 and held(parts) >= pages
        assert step is None or step.text
        dialogue.drop(draft)
        assert list(dialogue.base.ids) == past and list(dialogue._tail.ids) == tail
        assert len(parts.engine.scheduler.slots) == sessions
        assert held(parts) == pages and not dialogue._drafts
    parts.engine.check()


def test_what_was_drafted_for_other_words_is_not_answered(parts: Parts, conversation: Conversation) -> None:
    """The words are revised after a draft: the answer is the one a conversation without that draft gives."""
    dialogue, question = conversation._dialogue, "What is the capital of Italy?"
    plain = answered(dialogue, question)
    dialogue.listen("What is the capital of Spain")
    dialogue.drop(dialogue.draft(Prompt("What is the capital of Spain?")))
    dialogue.listen("What is the capital of Italy")
    assert answered(dialogue, question) == plain and "Spain" not in plain
    settled = dialogue.draft(Prompt(question))
    text = ""
    while not (step := settled.reply.step()).finished:
        text = step.text
    dialogue.settle(settled, len(text))
    assert "Spain" not in parts.engine.tokenizer.decode(dialogue.base.ids[len(dialogue._head) :])


def answered(dialogue: Dialogue, text: str) -> str:
    draft = dialogue.draft(Prompt(text))
    while not (step := draft.reply.step()).finished:
        pass
    dialogue.drop(draft)
    return step.text
