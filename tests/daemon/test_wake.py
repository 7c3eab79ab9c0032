"""The wake word with the models the wheel ships: asleep nothing is heard, the word opens the ears for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.build import Parts, converse
from assistant.conversation.workers import InlineWorkers
from assistant.daemon.config import WakeChoice
from assistant.daemon.ears import Ears
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession
from assistant.personas import load_persona
from assistant.timeline.events import Event, EventType, Turn
from tests.loaded import loaded

pytest.importorskip("pyopen_wakeword")


class Room(FrontEnd):
    """A conversation behind ears, fed faster than real time, a frame at a time."""

    def __init__(self, parts: Parts, choice: WakeChoice) -> None:
        self.parts = parts
        self.events: list[Event] = []
        self.turns: dict[int, Turn] = {}
        self.phase = Phase.LISTENING
        self.ears = Ears(choice)
        persona = load_persona("default")
        self.session = LiveSession(
            lambda wiring: converse(
                parts, persona, wiring.workers, wiring.clock, wiring.on_event, wiring.on_turn, wiring.output
            ),
            self,
            self.ears,
            workers=lambda wake: InlineWorkers(),
            monotonic=lambda: 0.0,
        )
        self.ears.use(self.session)
        self.session.start()
        self.session.wait_until_ready()

    def event(self, event: Event) -> None:
        self.events.append(event)

    def turn(self, turn: Turn) -> None:
        self.turns[turn.index] = turn

    def status(self, status) -> None:
        self.phase = status.phase

    def hear(self, sound: np.ndarray) -> None:
        for start in range(0, len(sound) - FRAME + 1, FRAME):
            for frame in self.ears.hear(sound[start : start + FRAME], muted=False):
                self.session.frame(frame, None)
            done = threading.Event()
            self.session.run(done.set)
            assert done.wait(60)

    def say(self, text: str) -> None:
        speech = self.parts.voice.synthesize(text)
        self.hear(resample(speech.pcm, speech.sample_rate, SAMPLE_RATE))

    def wait(self, seconds: float) -> None:
        self.hear(np.zeros(round(seconds * SAMPLE_RATE), np.float32))

    def until_quiet(self) -> None:
        for _ in range(60):
            self.wait(0.5)
            if self.phase is Phase.LISTENING:
                return
        raise AssertionError("never quiet")

    def count(self, kind: EventType) -> int:
        return sum(event.type is kind for event in self.events)


@pytest.fixture
def room(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Iterator[Room]:
    opened = Room(loaded(smollm2_path, whisper_path, piper_path), WakeChoice("hey_jarvis", follow_up=3.0))
    yield opened
    opened.session.close()


def test_the_word_opens_the_ears_and_an_answer_keeps_them_open(room: Room) -> None:
    room.wait(1.0)
    room.say("What is the capital of Spain?")
    room.wait(2.0)
    assert not room.turns and room.count(EventType.PARTIAL) == 0 and room.ears.asleep

    room.say("Hey Jarvis.")
    room.wait(0.6)
    assert room.count(EventType.WAKE) == 1 and not room.ears.asleep
    room.say("What is the capital of France?")
    room.until_quiet()
    assert "Paris" in room.turns[0].heard_text
    room.wait(1.0)
    room.say("How many legs does a spider have?")  # within the follow-up
    room.until_quiet()
    assert len(room.turns) == 2 and room.count(EventType.WAKE) == 1
    room.wait(3.5)
    assert room.ears.asleep
    room.say("What is the capital of Spain?")
    room.wait(2.0)
    assert len(room.turns) == 2

    room.say("Hey Jarvis, what is the capital of France?")  # in one breath
    room.until_quiet()
    assert len(room.turns) == 3 and "Paris" in room.turns[2].heard_text, room.turns[2]


@pytest.mark.parametrize("word", ["Stop.", "Never mind."])  # the floor's own, and one of the daemon's
def test_a_stop_word_over_an_answer_ends_it_and_the_listening(word: str, room: Room) -> None:
    room.say("Hey Jarvis.")
    room.session.say("Please explain how bread is made.")
    room.wait(2.5)
    assert room.phase is Phase.SPEAKING and not room.ears.asleep
    room.say(word)
    room.wait(2.0)
    assert room.phase is Phase.LISTENING and room.ears.asleep
    assert room.turns[0].interrupted and not any(turn.heard_text for turn in list(room.turns.values())[1:])
    context = room.turns[0].tokens.context
    room.session.say("What is the capital of France?")
    room.until_quiet()
    last = room.turns[max(room.turns)]
    assert "Paris" in last.heard_text and word.lower()[:-1] not in last.user_text.lower()
    assert last.tokens.referenced >= context - 1 and last.tokens.context < context + 40  # "stop" is in no past


def test_the_word_itself_stops_an_answer(room: Room) -> None:
    room.session.say("Please explain how bread is made.")
    room.wait(2.0)
    assert room.phase is Phase.SPEAKING
    room.say("Hey Jarvis.")
    room.wait(0.5)
    assert room.turns[0].interrupted and room.count(EventType.WAKE) == 1 and not room.ears.asleep


def test_without_a_word_everything_is_heard() -> None:
    ears = Ears(WakeChoice())
    frame = np.ones(FRAME, np.float32)
    assert tuple(ears.hear(frame, muted=False)) == (frame,) and not ears.asleep
