"""Another persona in the middle of a conversation: what was said stays, its own prompt comes before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assistant.audio.constants import FRAME
from assistant.build import character, converse
from assistant.conversation.workers import InlineWorkers
from assistant.personas import Persona, load_persona
from assistant.replay import VirtualClock
from assistant.timeline.events import Event, EventType, Turn
from tests.loaded import loaded

SILENCE = np.zeros(FRAME, np.float32)


def test_the_past_stays_and_a_known_prompt_is_not_computed_again(
    smollm2_path: Path, whisper_path: Path, piper_path: Path
) -> None:
    parts = loaded(smollm2_path, whisper_path, piper_path)
    events: list[Event] = []
    turns: list[Turn] = []
    first = load_persona("default")
    second = Persona(name="sailor", system="You are an old sailor. Answer in one short sentence.")
    conversation = converse(parts, first, InlineWorkers(), VirtualClock().now, events.append, turns.append, silent=True)
    dialogue = conversation._dialogue

    def settle() -> None:
        for _ in range(200):
            conversation.frame(SILENCE)
            if conversation.idle:
                return
        raise AssertionError("never settled")

    conversation.say_text("What is the capital of France?")
    settle()
    conversation.deliver()
    head = len(dialogue._head)
    past = list(dialogue.base.ids[head:])
    assert past

    conversation.become(character(parts, second, silent=True))
    conversation.deliver()
    assert events[-1].type is EventType.PERSONA and events[-1].text == "sailor"
    assert list(dialogue.base.ids) == dialogue._head + past
    assert "sailor" in parts.engine.tokenizer.decode(dialogue._head)

    known = parts.heads.forwarded
    conversation.become(character(parts, first, silent=True))
    conversation.deliver()
    stats = dialogue.base.stats
    assert list(dialogue.base.ids)[head:] == past
    assert parts.heads.forwarded == known, "the first persona's prompt was still there"
    assert stats.forwarded <= 1, "and so was what was said behind it"

    conversation.say_text("And of Italy?")
    conversation.become(character(parts, second, silent=True))  # in the middle of a turn: from the next one on
    settle()
    conversation.deliver()
    conversation.deliver()
    assert turns[-1].assistant_text and events[-1].text == "sailor"
    assert list(dialogue.base.ids)[len(dialogue._head) :][: len(past)] == past
    conversation.close()
