"""Loudness over time, small enough to draw: one peak per 20 ms."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

FRAMES_PER_SECOND = 50


class Envelope:
    """Peaks of a stream of 20 ms frames: 4 bytes a frame, so that an hour is under a megabyte."""

    def __init__(self) -> None:
        self._peaks = array("f")

    def push(self, frame: NDArray[np.float32]) -> None:
        """Take one frame."""
        self._peaks.append(float(np.abs(frame).max()))

    def peaks(self) -> NDArray[np.float32]:
        """One peak in [0, 1] per frame so far."""
        return np.array(self._peaks, dtype=np.float32)
