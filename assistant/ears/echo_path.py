"""Is there a way from the loudspeaker to the microphone? With headphones there is none, and cancelling would only harm:
in its first second WebRTC's canceller takes whatever is heard beside the assistant for its echo.

Two witnesses. While the assistant sounds and the microphone stays at its background, there is no way. While the
microphone is loud, the two are compared: an echo shows as one sharp peak of their whitened cross-correlation, whatever
the room and the level, and another voice shows none.

                        peak over the rest, 200 ms windows: median (90 % within)
    echo, 0 to -15 dB, 60 and 250 ms           20 to 24   (9 to 35)
    the same with the user speaking over it    15 to 20   (5 to 33)
    the user alone, headphones                 5          (4 to 8)
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE

Pcm = NDArray[np.float32]

WAY = SAMPLE_RATE * 4 // 10
"""Longest way of a sound from here to the microphone (speaker's buffer, air, microphone's buffer)."""
WINDOW = SAMPLE_RATE // 5
"""Sound of the microphone that is compared at a time (200 ms)."""
SHORT = SAMPLE_RATE * 6 // 100
"""The same when there is no time."""
EVERY = 5
"""Frames between two comparisons."""
LOUD = 7
"""Loud frames of a window's ten without which it says nothing: a single click has a peak everywhere."""
ECHO_PEAK = 14.0
"""A peak so many times the rest is an echo: more than two like voices that begin a word together reach."""
NO_PEAK = 9.0
"""A peak under this is none."""
STRANGE = 2
"""So many windows of a loud microphone in a row without a peak are somebody else, if there never was an echo ..."""
STRANGE_AFTER_ECHO = 8
"""... and if there was one: in the fades of the assistant's words up to four in a row show nothing."""
QUIET_FRAMES = 15
"""Frames of sound without anything in the microphone (300 ms) that show there is no way."""
OVER_FLOOR_DB = 10.0
"""Sound stands out of the background by this, or it does not matter."""
LOW, HIGH = 200, 4_000
"""Band in hertz that is compared: where speech is."""


class EchoPath:
    """`there` says what is known so far; until something is known there is a way. Changes when the user takes the
    headphones off, or puts them on."""

    def __init__(self) -> None:
        self.there = True
        self._far = np.zeros(WAY + WINDOW, np.float32)
        self._near = np.zeros(WINDOW, np.float32)
        self._sounding = 0
        """Samples for which the assistant has been sounding."""
        self._silent = WAY + WINDOW
        self._quiet_frames = 0
        self._loud: deque[bool] = deque([False] * (WINDOW // FRAME), WINDOW // FRAME)
        self._since = 0
        """Frames since the last comparison."""
        self._strange = 0
        """Windows in a row that held no echo."""
        self._echoed = False
        """There has been an echo."""
        self._floor = -70.0

    def far(self, sound: Pcm, *, loud: bool) -> None:
        """What is being played: float32 at 16 kHz, any length; `loud`: there is sound in this frame."""
        if sound.size:
            self._far = np.concatenate([self._far[sound.size :], sound])
        self._sounding = self._sounding + FRAME if loud else 0
        self._silent = 0 if loud else self._silent + FRAME
        if not loud:
            self._quiet_frames = 0

    def near(self, microphone: Pcm, level_db: float) -> None:
        """A frame of the microphone and its level."""
        self._near = np.concatenate([self._near[FRAME:], microphone])
        if self._sounding == 0:
            self._floor += 0.1 * (max(level_db, -75.0) - self._floor) if level_db < self._floor + 6.0 else 0.05
        loud = level_db >= self._floor + OVER_FLOOR_DB
        self._loud.append(loud)
        self._since += 1
        if loud:
            self._quiet_frames = 0
            if self._since >= EVERY and self._silent < WINDOW and sum(self._loud) >= LOUD:
                self._since = 0
                self._compare()
        elif self._sounding >= WAY:
            self._quiet_frames += 1
            if self._quiet_frames >= QUIET_FRAMES:
                self.there = self._echoed = False

    @property
    def known(self) -> bool:
        """Whether it is known if there is a way or none."""
        return self._echoed or not self.there

    def strange(self) -> bool:
        """Whether the last 60 ms are loud and nothing like an echo. Sooner than the verdict about the way, and right
        in nine cases of ten: the peak of an echo's first 60 ms is 20 (90 % over 10), of another voice's 6 (90 % under
        9)."""
        loud = all(list(self._loud)[-SHORT // FRAME :])
        return loud and peak_over_rest(self._near[-SHORT:], self._far) < NO_PEAK

    def _compare(self) -> None:
        peak = peak_over_rest(self._near, self._far)
        if peak >= ECHO_PEAK:
            self.there, self._echoed, self._strange = True, True, 0
        elif peak < NO_PEAK:
            self._strange += 1
            if self._strange >= (STRANGE_AFTER_ECHO if self._echoed else STRANGE):
                self.there = self._echoed = False
        else:
            self._strange = 0


def peak_over_rest(near: Pcm, far: Pcm) -> float:
    """Highest peak of the whitened cross-correlation of `near` with the later `far`, over its root mean square.

    `far` ends where `near` ends; only delays up to the difference of their lengths are looked at. About 0.5 ms.
    """
    size = 1 << (far.size - 1).bit_length()
    cross = np.fft.rfft(far, size) * np.conj(np.fft.rfft(near, size))
    strength = np.abs(cross)
    cross /= strength + 1e-9 * strength.max() + 1e-20
    band = np.arange(cross.size) * SAMPLE_RATE / size
    cross[(band < LOW) | (band > HIGH)] = 0
    delays = np.fft.irfft(cross, size)[: far.size - near.size + 1]
    return float(np.abs(delays).max() / np.sqrt(np.square(delays).mean() + 1e-20))
