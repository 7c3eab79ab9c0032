"""A recording as the microphone: the whole assistant without a sound card.

`WALL` feeds the recording at real pace, so latencies are real. `VIRTUAL` feeds it as fast as the machine goes, with
all work done in place: the decisions are the same, computing takes no time on the audio clock, and a run is the same
each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.conversation.conversation import Conversation
from assistant.pace import ClockKind

__all__ = ["Clock", "ClockKind", "VirtualClock", "WallClock", "replay"]

LONGEST_ANSWER = 60.0
"""Seconds after the recording's end for which an answer is still waited for."""
SETTLE = 1.0
"""Seconds of silence at the end, so that the last word's endpoint can come."""


class Clock(Protocol):
    """Seconds on the audio clock, and when the next frame is due."""

    def now(self) -> float:
        """Seconds since the first frame began."""

    def until_frame(self, number: int, deliver: Callable[[], None]) -> None:
        """Wait until frame `number` (from 0) is whole; call `deliver` whenever work has come in."""


class VirtualClock:
    """Time is what was heard."""

    def __init__(self) -> None:
        self._frames = 0

    def now(self) -> float:
        """See `Clock.now`."""
        return self._frames * FRAME / SAMPLE_RATE

    def until_frame(self, number: int, deliver: Callable[[], None]) -> None:
        """See `Clock.until_frame`."""
        self._frames = number + 1

    def wake(self) -> None:
        """Nothing waits."""


class WallClock:
    """Real time, from the first frame on."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._start: float | None = None

    def now(self) -> float:
        """See `Clock.now`."""
        return 0.0 if self._start is None else time.monotonic() - self._start

    def until_frame(self, number: int, deliver: Callable[[], None]) -> None:
        """See `Clock.until_frame`."""
        if self._start is None:
            self._start = time.monotonic()
        due = self._start + (number + 1) * FRAME / SAMPLE_RATE
        while (left := due - time.monotonic()) > 0:
            if self._wake.wait(left):
                self._wake.clear()
                deliver()

    def wake(self) -> None:
        """Work has come in (any thread)."""
        self._wake.set()


def replay(
    conversation: Conversation,
    recording: Iterator[NDArray[np.float32]],
    clock: Clock,
    on_frame: Callable[[NDArray[np.float32], NDArray[np.float32]], None],
) -> None:
    """Feed `recording` (frames of 20 ms) and then silence until the conversation has come to rest.

    `on_frame(heard, said)` gets every pair of frames: 320 samples of the microphone, 480 of the assistant.
    """
    number = 0
    silence = np.zeros(FRAME, dtype=np.float32)

    def step(frame: NDArray[np.float32]) -> None:
        nonlocal number
        clock.until_frame(number, conversation.deliver)
        on_frame(frame, conversation.frame(frame))
        number += 1

    for frame in recording:
        step(frame)
    settled = 0
    for _ in range(round(LONGEST_ANSWER * SAMPLE_RATE / FRAME)):
        step(silence)
        settled = settled + 1 if conversation.idle else 0
        if settled >= SETTLE * SAMPLE_RATE / FRAME:
            return
