"""The daemon's microphone and speaker: waited for, not insisted on.

A desk gives up where there is no device; a box in a cupboard starts before its sound server does. Until the devices
open, and whenever they are lost, silence at the same pace keeps the conversation's clock going.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.devices import look_again
from assistant.audio.sound_card import DeviceChange, DeviceEvent, SoundCard, SoundStats
from assistant.live import FrontEnd
from assistant.settings import AudioChoice

RETRY_EVERY = 1.0
LATE = 1.0
"""Seconds behind real time from which the clock gives up catching up: the machine was asleep."""

Feed = Callable[[NDArray[np.float32], Callable[[], int]], None]


class DaemonSound(FrontEnd):
    """Frames for `feed` at the pace of the microphone, or of the clock while there is none."""

    def __init__(self, choice: AudioChoice, on_event: Callable[[DeviceEvent], None]) -> None:
        """`on_event` is called from other threads; each change of what is waited for is told once."""
        self._choice = choice
        self._tell = on_event
        self._feed: Feed = lambda frame, delay: None
        self._card: SoundCard | None = None
        self._stats = SoundStats()
        self._closing = threading.Event()
        self._changed = threading.Event()
        """Other devices are wanted."""
        self._threads: list[threading.Thread] = []
        self._due = 0.0
        self.waiting = "the sound devices to open"
        """What is waited for; empty while microphone and speaker work."""

    def run(self, feed: Feed) -> None:
        """Begin; returns at once, devices or not."""
        self._feed = feed
        for name, work in (("microphone", self._listen), ("sound-opener", self._keep_open)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def use(self, choice: AudioChoice) -> None:
        """Other devices from now on."""
        if choice != self._choice:
            self._choice = choice
            self._changed.set()

    def close(self) -> None:
        """Let the devices go."""
        self._closing.set()
        self._changed.set()
        for thread in self._threads:
            thread.join(10)

    @property
    def names(self) -> tuple[str, str]:
        """Microphone and speaker in use; empty while there are none."""
        return self._card.names if self._card is not None else ("", "")

    @property
    def stats(self) -> SoundStats:
        """What went wrong since the start, over all devices."""
        return _sum(self._stats, self._card.stats) if self._card is not None else self._stats

    def sound(self, frame: NDArray[np.float32]) -> None:
        """See `FrontEnd.sound`."""
        if (card := self._card) is not None:
            card.write(frame)

    def drop(self) -> None:
        """See `FrontEnd.drop`."""
        if (card := self._card) is not None:
            card.drop()

    # --- threads ----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._due = time.monotonic()
        while not self._closing.is_set():
            if (card := self._card) is not None:
                frame = card.read()
                self._due = time.monotonic()
            else:
                frame = self._silence()
            self._feed(frame, self._delay)

    def _silence(self) -> NDArray[np.float32]:
        self._due += FRAME / SAMPLE_RATE
        wait = self._due - time.monotonic()
        if wait < -LATE:
            self._due -= wait
        self._closing.wait(max(0.0, wait))
        return np.zeros(FRAME, np.float32)

    def _delay(self) -> int:
        return card.delay if (card := self._card) is not None else 0

    def _keep_open(self) -> None:
        while not self._closing.is_set():
            self._changed.clear()
            self._open()
            if self._card is not None:
                self._changed.wait()  # from here on the card looks after its devices itself
                card, self._card = self._card, None
                card.close()
                self._stats = _sum(self._stats, card.stats)

    def _open(self) -> None:
        while not self._closing.is_set() and not self._changed.is_set():
            card = SoundCard(self._choice.microphone, self._choice.speaker, self._on_event)
            try:
                card.open()
            except Exception as error:  # whatever PortAudio makes of a system that is only half there
                card.close()
                self._wait_for(" ".join(str(error).split()))
                self._changed.wait(RETRY_EVERY)
                self._look_again()
                continue
            self._card = card
            self._on_event(DeviceEvent(DeviceChange.BACK, f"microphone and speaker: {' and '.join(card.names)}."))
            return

    def _look_again(self) -> None:
        try:
            look_again()
        except Exception as error:
            self._wait_for(f"the sound system does not answer ({error})")

    def _wait_for(self, trouble: str) -> None:
        if trouble != self.waiting:
            self.waiting = trouble
            self._tell(DeviceEvent(DeviceChange.LOST, f"waiting for sound: {trouble}"))

    def _on_event(self, event: DeviceEvent) -> None:
        self.waiting = event.text if event.change is DeviceChange.LOST else ""
        self._tell(event)


def _sum(one: SoundStats, other: SoundStats) -> SoundStats:
    return SoundStats(
        one.input_xruns + other.input_xruns,
        one.output_xruns + other.output_xruns,
        one.underflows + other.underflows,
        one.dropped_samples + other.dropped_samples,
        one.lost + other.lost,
    )
