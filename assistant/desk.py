"""A live conversation at this machine's own microphone and speaker.

card = SoundCard(...); desk = Desk(card)
session = LiveSession(make, desk, screen).start()
desk.run(session)      # frames flow until desk.close()
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from assistant.audio.sound_card import SoundCard
from assistant.live import FrontEnd, LiveSession


class Desk(FrontEnd):
    """The sound half of a front end: what is heard goes to the session, what it says to the speaker."""

    def __init__(self, card: SoundCard) -> None:
        self._card = card
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def sound(self, frame: NDArray[np.float32]) -> None:
        """See `FrontEnd.sound`."""
        self._card.write(frame)

    def drop(self) -> None:
        """See `FrontEnd.drop`."""
        self._card.drop()

    def run(self, session: LiveSession) -> None:
        """Open the devices (DeviceError if there are none) and begin to listen; returns at once."""
        self._card.open()
        self._thread = threading.Thread(target=self._listen, args=(session,), name="microphone", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and close the devices. Close the session first, so that its last sound is not cut."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(5)
        self._card.close()

    def _listen(self, session: LiveSession) -> None:
        while not self._closing.is_set():
            session.frame(self._card.read(), self._delay)

    def _delay(self) -> int:
        return self._card.delay
