"""Case 34: the model says nothing, or nothing that sounds. The floor is free again at once, and the next turn works.

Case 33: words that no full stop follows are said too.

Case 38: questions that come on each other's heels. One mouth: an answer ends before the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assistant.floor import Phase
from engine import Sampling
from tests.conversation.talk import Talk
from tests.loaded import loaded


@pytest.fixture
def talk(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Iterator[Talk]:
    running = Talk(loaded(smollm2_path, whisper_path, piper_path))
    yield running
    running.conversation.close()


def mute_model(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the end of the turn the only token the model will choose."""
    dialogue = talk.conversation._dialogue
    end = dialogue._engine.template.end_of_turn_ids
    silent = Sampling(logit_bias=dict.fromkeys(end, 1e4))
    monkeypatch.setattr(dialogue, "_sampling", lambda: silent)


def test_the_model_says_nothing(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        mute_model(talk, patch)
        talk.conversation.say_text("What is the capital of France?")
        sound = talk.frames(5)
        assert talk.conversation.phase is Phase.LISTENING and talk.conversation.idle
        assert not sound.any()
        assert talk.turns[0].assistant_text == talk.turns[0].heard_text == ""
        assert talk.turns[0].speech_start is None and not talk.turns[0].interrupted
    talk.conversation.say_text("What is the capital of Spain?")
    talk.until(lambda: talk.conversation.idle)
    assert "Madrid" in talk.turns[1].heard_text


@pytest.mark.parametrize("text", ["...", "—", "🙂", "**"])
def test_the_answer_has_no_sound(talk: Talk, text: str) -> None:
    talk.conversation.greet(text)
    assert talk.conversation.phase is not Phase.LISTENING
    sound = talk.frames(5)
    assert talk.conversation.phase is Phase.LISTENING and talk.conversation.idle
    assert not sound.any() and talk.turns[0].speech_start is None
    talk.conversation.say_text("What is the capital of Spain?")
    talk.until(lambda: talk.conversation.idle)
    assert "Madrid" in talk.turns[1].heard_text


@pytest.mark.parametrize("text", ["Sure, here it is", "Sure", "It is this one:", "(yes"])
def test_an_answer_without_a_full_stop_is_spoken(talk: Talk, text: str) -> None:
    talk.conversation.greet(text)
    sound = talk.frames(talk.until(lambda: talk.conversation.playing) + 15)
    assert np.abs(sound).max() > 0.05
    talk.until(lambda: talk.conversation.idle)
    turn = talk.turns[0]
    assert turn.heard_text == text and not turn.interrupted
    assert all(word.heard for word in turn.words)
    assert turn.words and text.rstrip(":").endswith(turn.words[-1].text.rstrip(":"))


def test_silence_sends_nothing(talk: Talk) -> None:
    dialogue = talk.conversation._dialogue
    before = list(dialogue.base.ids)
    assert not talk.frames(150).any()
    assert talk.conversation.phase is Phase.LISTENING and not talk.turns
    assert dialogue.base.ids == before and dialogue._tail is None and not dialogue._drafts


def test_two_quick_questions_while_it_speaks(talk: Talk) -> None:
    talk.conversation.say_text("Tell me about the ocean.")
    talk.until(lambda: talk.conversation.playing)
    talk.frames(40)
    talk.conversation.say_text("How many legs does a spider have?")
    talk.frames(10)
    talk.conversation.say_text("What is the capital of Spain?")
    talk.until(lambda: talk.conversation.idle)
    first, *_, last = talk.turns.values()
    assert first.interrupted and first.heard_text and first.assistant_text.startswith(first.heard_text)
    assert last.user_text == "What is the capital of Spain?" and "Spain" in last.heard_text
    assert last.heard_text == last.assistant_text.strip() and not last.interrupted
    spoken = [turn for turn in talk.turns.values() if turn.speech_start is not None]
    for before, after in zip(spoken, spoken[1:], strict=False):
        assert before.speech_end is not None and after.speech_start is not None
        assert before.speech_end <= after.speech_start, "two answers in the air at once"
