"""The live loop: one thread, a clock that counts frames, work taken in between them, front ends that come and go."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from assistant.audio.constants import FRAME, PLAYBACK_FRAME
from assistant.conversation.workers import InlineWorkers, Lane
from assistant.floor import Phase
from assistant.live import FrameClock, FrontEnd, LiveSession, Wiring
from assistant.timeline.events import Event, EventType


class Parrot:
    """A conversation that says what it hears, and notes what is asked of it."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.phase = Phase.LISTENING
        self.heard: list[float] = []
        self.delays: list[int] = []
        self.asked: list[str] = []
        self.delivered = 0
        self.closed = False
        self.on_delivery = lambda: None
        self.threads: set[str] = set()

    def frame(self, microphone):
        self.threads.add(threading.current_thread().name)
        if microphone[0] < 0:
            raise ValueError("a broken frame")
        self.heard.append(float(microphone[0]))
        self.delays.append(self.wiring.output.delay)
        return np.full(PLAYBACK_FRAME, microphone[0], np.float32)

    def deliver(self):
        self.threads.add(threading.current_thread().name)
        self.delivered += len(self.wiring.workers.finished())
        self.on_delivery()

    def say_text(self, text):
        self.asked.append(f"say {text}")
        self.phase = Phase.THINKING

    def talk_key(self, key):
        self.asked.append(f"key {key.value}")

    def stop(self):
        self.asked.append("stop")
        if self.wiring.output.drop:
            self.wiring.output.drop()

    def close(self):
        self.closed = True


class Watcher(FrontEnd):
    def __init__(self) -> None:
        self.sounds: list[float] = []
        self.statuses: list = []
        self.events: list[Event] = []
        self.dropped = 0

    def event(self, event):
        self.events.append(event)

    def status(self, status):
        self.statuses.append(status)

    def sound(self, frame):
        assert frame.shape == (PLAYBACK_FRAME,)
        self.sounds.append(float(frame[0]))

    def drop(self):
        self.dropped += 1


class Room:
    """A live session around a parrot."""

    def __init__(self, **how) -> None:
        self.watcher = Watcher()
        self.session = LiveSession(self.make, self.watcher, workers=lambda wake: InlineWorkers(), **how).start()
        self.session.wait_until_ready()

    def make(self, wiring):
        self.parrot = Parrot(wiring)
        return self.parrot

    def hear(self, *values: float, delay: int | None = None) -> None:
        for value in values:
            frame = np.full(FRAME, value, np.float32)
            self.session.frame(frame, None if delay is None else lambda: delay)


@pytest.fixture
def room():
    room = Room()
    yield room
    room.session.close()


def test_frames_go_in_and_sound_comes_out_in_order(room: Room) -> None:
    room.hear(0.1, 0.2, 0.3)
    room.session.close()
    assert room.parrot.heard == pytest.approx([0.1, 0.2, 0.3])
    assert room.watcher.sounds == pytest.approx([0.1, 0.2, 0.3])
    assert room.parrot.closed and room.parrot.threads == {"crosstalk-live"}


def test_the_clock_counts_frames_and_at_most_one_more() -> None:
    seconds = [0.0]
    clock = FrameClock(lambda: seconds[0])
    assert clock.now() == 0.0
    clock.tick()
    assert clock.now() == pytest.approx(0.02)
    seconds[0] += 0.007
    assert clock.now() == pytest.approx(0.027)
    seconds[0] += 3600  # the machine slept: no time passed in the conversation
    assert clock.now() == pytest.approx(0.04)
    clock.tick()
    assert clock.now() == pytest.approx(0.04)


def test_frames_that_come_all_at_once_are_all_heard(room: Room) -> None:
    room.hear(*[0.5] * 200)
    room.session.close()
    assert len(room.parrot.heard) == 200


def test_a_broken_frame_is_told_and_survived(room: Room) -> None:
    room.hear(0.1, -1.0, 0.3)
    room.session.close()
    assert room.parrot.heard == pytest.approx([0.1, 0.3])
    assert [(e.type, e.reason) for e in room.watcher.events] == [(EventType.ERROR, "ValueError: a broken frame")]


class Broken(FrontEnd):
    """One that cannot write, show or play anything."""

    def event(self, event):
        raise OSError("no space left")

    status = sound = turn = event

    def drop(self):
        raise OSError("no space left")


def test_a_front_end_that_fails_harms_nobody_and_is_told_of_once() -> None:
    room = Room()
    room.session.attach(Broken())
    late = Watcher()
    room.session.attach(late)
    room.hear(*[0.1] * 20, -1.0, 0.2)
    room.session.stop()
    room.session.close()
    assert room.parrot.heard == pytest.approx([*[0.1] * 20, 0.2]) and room.parrot.closed
    for watcher in (room.watcher, late):
        assert watcher.sounds[-21:] == pytest.approx([*[0.1] * 20, 0.2]) and watcher.dropped == 1
        assert watcher.events[-1].reason == "ValueError: a broken frame"
    assert [event.reason for event in room.watcher.events[:-1]] == ["Broken: OSError: no space left"]


def test_muted_is_silence_and_time_goes_on(room: Room) -> None:
    room.hear(0.1)
    room.session.mute(True)
    room.hear(0.2)
    room.session.mute(False)
    room.hear(0.3)
    room.session.close()
    assert room.parrot.heard == pytest.approx([0.1, 0.0, 0.3])
    assert [s.muted for s in room.watcher.statuses] == [False, True, False]


def test_push_to_talk_hears_while_the_key_is_down_and_takes_the_floor(room: Room) -> None:
    room.session.push_to_talk(True)
    room.hear(0.1)
    room.session.talk(True)
    room.hear(0.2)
    room.session.talk(False)
    room.hear(0.3)
    room.session.close()
    assert room.parrot.heard == pytest.approx([0.0, 0.2, 0.0])
    assert room.parrot.asked == ["key up", "stop", "key down", "key up"]


def test_commands_reach_the_conversation_and_a_change_of_floor_is_told_at_once(room: Room) -> None:
    room.session.say("  hello ")
    room.session.say("   ")
    room.session.stop()
    room.session.close()
    assert room.parrot.asked == ["say hello", "stop"]
    assert [s.phase for s in room.watcher.statuses] == [Phase.LISTENING, Phase.THINKING]


def test_the_delay_is_asked_with_each_frame_and_a_stop_drops_what_is_buffered(room: Room) -> None:
    room.hear(0.1)
    room.hear(0.2, delay=1440)
    room.session.stop()
    room.session.close()
    assert room.parrot.delays == [0, 1440] and room.watcher.dropped == 1


def test_a_conversation_that_cannot_begin_says_why() -> None:
    def broken(wiring: Wiring):
        raise ValueError("no room for this persona's prompt")

    watcher = Watcher()
    session = LiveSession(broken, watcher, workers=lambda wake: InlineWorkers()).start()
    with pytest.raises(ValueError, match="no room"):
        session.wait_until_ready()
    session.frame(np.zeros(FRAME, np.float32))
    session.say("hello")
    session.close()
    assert [event.reason for event in watcher.events] == ["no room for this persona's prompt"] and not watcher.sounds


def test_levels_come_ten_times_a_second(room: Room) -> None:
    room.hear(*[0.25] * 12)
    room.session.close()
    levels = [s.user for s in room.watcher.statuses if s.user]
    assert levels == [(0.25,) * 5, (0.25,) * 5]


def test_front_ends_come_and_go(room: Room) -> None:
    second = Watcher()
    room.hear(0.1)
    room.session.attach(second)
    room.hear(0.2)
    room.session.detach(second)
    room.hear(0.3)
    room.session.close()
    assert second.sounds == pytest.approx([0.2]) and len(room.watcher.sounds) == 3


def test_finished_work_is_taken_in_between_frames() -> None:
    arrived = threading.Event()

    class Waking(InlineWorkers):
        def __init__(self, wake) -> None:
            super().__init__()
            self.wake = wake

        def submit(self, lane, job, receive):
            super().submit(lane, job, receive)
            self.wake()

    room = Room.__new__(Room)
    room.watcher = Watcher()
    room.session = LiveSession(room.make, room.watcher, workers=Waking).start()
    room.session.wait_until_ready()
    room.parrot.on_delivery = arrived.set
    room.parrot.wiring.workers.submit(Lane.MIND, lambda: 1, lambda _: None)
    assert arrived.wait(5)
    room.session.close()
    assert room.parrot.delivered == 1 and not room.parrot.heard
