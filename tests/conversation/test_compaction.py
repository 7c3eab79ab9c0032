"""A long conversation is shortened between turns and goes on as before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from assistant.build import ModelPaths, converse, load
from assistant.conversation.workers import InlineWorkers
from assistant.mouth import SilentMouth
from assistant.personas import load_persona
from assistant.replay import VirtualClock
from assistant.settings import parse_settings
from assistant.timeline.events import Event, EventType, Turn
from tests.loaded import loaded


def test_the_past_is_shortened_and_no_turn_is_lost(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> None:
    settings = parse_settings()
    settings = replace(settings, engine=replace(settings.engine, context=512))
    parts = load(ModelPaths(smollm2_path, whisper_path, piper_path), settings)
    events: list[Event] = []
    turns: dict[int, Turn] = {}
    clock = VirtualClock()
    try:
        conversation = converse(
            parts,
            load_persona("default"),
            InlineWorkers(),
            clock.now,
            events.append,
            lambda turn: turns.__setitem__(turn.index, turn),
            silent=True,
        )
        silence = np.zeros(320, np.float32)
        asked = 0
        for number in range(20_000):
            clock.until_frame(number, conversation.deliver)
            conversation.frame(silence)
            if conversation.idle and number % 150 == 149:
                if asked == 24:
                    break
                conversation.say_text(f"What is {asked} plus one?")
                asked += 1
        held = parts.engine.stats.pools[0].held
        conversation.close()
        assert parts.engine.stats.pools[0].held < held
    finally:
        parts.close()
    assert len(turns) == 24 and all(turn.assistant_text for turn in turns.values())
    assert not [event for event in events if event.type is EventType.ERROR]
    swaps = [event for event in events if event.type is EventType.COMPACTED]
    assert swaps
    sizes = [turn.tokens.context for turn in turns.values()]
    assert max(sizes) <= 512 and sizes[-1] < sum(turn.tokens.forwarded for turn in turns.values())
    # A swapped history costs the next turn nothing: its prompt is found where the old one was.
    assert all(turn.tokens.forwarded <= 40 for turn in turns.values())


def test_a_past_that_was_never_shortened_is_when_a_turn_needs_the_room(
    smollm2_path: Path, whisper_path: Path, piper_path: Path
) -> None:
    """Nobody is ever silent long enough: the turn makes its own room, and none fails."""
    settings = parse_settings()
    settings = replace(settings, engine=replace(settings.engine, context=400))
    parts = load(ModelPaths(smollm2_path, whisper_path, piper_path), settings)
    events: list[Event] = []
    turns: dict[int, Turn] = {}
    persona = load_persona("default")
    try:
        conversation = converse(
            parts, persona, InlineWorkers(), VirtualClock().now, events.append,
            lambda turn: turns.__setitem__(turn.index, turn), silent=True,
        )  # fmt: skip
        conversation._rest = lambda: None
        silence = np.zeros(320, np.float32)
        for number in range(20):
            conversation.say_text(f"What is {number} plus one?")
            while not conversation.idle:
                conversation.frame(silence)
        conversation.deliver()
        assert len(turns) == 20 and all(turn.assistant_text for turn in turns.values())
        assert not [event for event in events if event.type is EventType.ERROR]
        assert max(turn.tokens.context for turn in turns.values()) <= 400
        conversation.close()
    finally:
        parts.close()


class Hoarse(SilentMouth):
    """Cannot say a word."""

    def stream(self, clause, *, quickly):
        raise ValueError("hoarse")


def test_an_answer_that_fails_leaves_nothing_behind(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> None:
    parts = loaded(smollm2_path, whisper_path, piper_path)
    events: list[Event] = []
    conversation = converse(
        parts, load_persona("default"), InlineWorkers(), VirtualClock().now, events.append, silent=True
    )
    dialogue = conversation._dialogue
    sessions = parts.engine.stats.sessions
    real = dialogue._mouth
    for broken in (None, Hoarse()):  # the draft itself fails; its first step does
        dialogue._mouth = broken
        conversation.say_text("What is the capital of France?")
        conversation.deliver()
        assert any(event.type is EventType.ERROR for event in events)
        assert not dialogue._drafts and parts.engine.stats.sessions == sessions
        events.clear()
    dialogue._mouth = real
    conversation.say_text("What is the capital of France?")
    for _ in range(200):
        conversation.frame(np.zeros(320, np.float32))
    assert conversation.idle and "Paris" in parts.engine.tokenizer.decode(dialogue.base.ids)
    conversation.close()
