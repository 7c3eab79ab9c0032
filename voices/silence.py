"""Silence at the ends of a sentence, cut to the wanted length while the sound streams by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_QUIET = 0.005  # of full scale; speech has 0.08 on average


@dataclass(frozen=True)
class Pauses:
    """The longest silence left before a sentence and behind it, by its last mark, in seconds.

    The model begins each sentence with about 0.05 s of silence and ends it with about 0.25 s.
    """

    before: float = 0.01
    comma: float = 0.1  # also where the sentence goes on without a mark
    sentence: float = 0.24

    def behind(self, mark: str) -> float:
        return self.comma if mark in ("", ",", ";") else self.sentence


class Trimmer:
    """Takes the stretches of one sentence and gives back what is to be played of them."""

    def __init__(self, pauses: Pauses, rate: int, mark: str, samples: int) -> None:
        """`samples`: the sentence's whole length, silence included."""
        self.dropped = 0  # samples cut off at the beginning
        self._before = int(pauses.before * rate)
        self._behind = int(pauses.behind(mark) * rate)
        self._left = samples
        self._started = False
        self._quiet = 0  # samples of silence at the end of what was given back

    def push(self, stretch: NDArray[np.float32]) -> NDArray[np.float32]:
        """The part of this stretch to be played."""
        self._left -= len(stretch)
        loud = np.flatnonzero(np.abs(stretch) > _QUIET)
        if not self._started:
            self._started = True
            if len(loud):
                self.dropped = max(0, int(loud[0]) - self._before)
                stretch, loud = stretch[self.dropped :], loud - self.dropped
        if self._left > 0:
            self._quiet = len(stretch) - 1 - int(loud[-1]) if len(loud) else self._quiet + len(stretch)
            return stretch
        if len(loud):
            return stretch[: int(loud[-1]) + 1 + self._behind]
        return stretch[: max(0, self._behind - self._quiet)]
