"""A long conversation is shortened between turns and goes on as before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from assistant.build import ModelPaths, converse, load
from assistant.conversation.workers import InlineWorkers
from assistant.personas import load_persona
from assistant.replay import VirtualClock
from assistant.settings import parse_settings
from assistant.timeline.events import Event, EventType, Turn


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
