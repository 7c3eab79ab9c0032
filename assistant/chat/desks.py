"""The sound half of a chat: microphone and speaker, a speaker alone, or nothing but a clock.

`assistant/desk.py` has both devices. Who types needs no microphone, and who only reads no speaker: frames of silence
then keep the conversation's clock going.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.devices import find_device
from assistant.audio.streams import Speaker
from assistant.live import FrontEnd, LiveSession

LATE = 1.0
"""Seconds behind real time from which the clock gives up catching up: the machine was asleep."""


class Sound(Protocol):
    """What gives a conversation its frames and plays what it says; itself one of its front ends."""

    def run(self, session: LiveSession) -> None:
        """Open the devices (DeviceError) and begin; returns at once."""

    def close(self) -> None:
        """Stop and let the devices go."""


class QuietDesk(FrontEnd):
    """No devices: silence at real pace."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, session: LiveSession) -> None:
        """See `Sound.run`."""
        self._thread = threading.Thread(target=self._tick, args=(session,), name="clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """See `Sound.close`."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(5)

    def _tick(self, session: LiveSession) -> None:
        silence = np.zeros(FRAME, np.float32)
        due = time.monotonic()
        while True:
            due += FRAME / SAMPLE_RATE
            wait = due - time.monotonic()
            if wait < -LATE:
                due -= wait
            if self._closing.wait(max(0.0, wait)):
                return
            session.frame(silence, self._delay)

    def _delay(self) -> int:
        return 0


class SpeakerDesk(QuietDesk):
    """A speaker and no microphone."""

    def __init__(self, speaker: str | int | None = None) -> None:
        super().__init__()
        self._wanted = speaker
        self._speaker: Speaker | None = None

    def run(self, session: LiveSession) -> None:
        """See `Sound.run`."""
        self._speaker = Speaker(find_device(self._wanted, speaker=True))
        self._speaker.start()
        super().run(session)

    def close(self) -> None:
        """See `Sound.close`."""
        super().close()
        if self._speaker is not None:
            self._speaker.close()

    def sound(self, frame: NDArray[np.float32]) -> None:
        """See `FrontEnd.sound`."""
        if self._speaker is not None:
            self._speaker.write(frame)

    def drop(self) -> None:
        """See `FrontEnd.drop`."""
        if self._speaker is not None:
            self._speaker.drop()

    def _delay(self) -> int:
        return 0 if self._speaker is None else self._speaker.delay
