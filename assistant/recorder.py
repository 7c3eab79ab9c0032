"""What was heard and said, to disk and to a picture: a stereo recording that is valid at every moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.resample import StreamResampler
from assistant.audio.wav import WavWriter
from assistant.timeline.envelope import Envelope

FLUSH_FRAMES = 25
"""Frames between two writes (half a second): a killed run loses no more."""


class Recorder:
    """Left: what the microphone heard. Right: what the assistant said. Both at `PLAYBACK_RATE`, sample-aligned."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps the envelopes only. Raises `SoundWriteError` if the file cannot be written."""
        self._writer = WavWriter(path, PLAYBACK_RATE, 2) if path is not None else None
        self._resampler = StreamResampler(SAMPLE_RATE, PLAYBACK_RATE)
        self._left: list[NDArray[np.float32]] = []
        self._right: list[NDArray[np.float32]] = []
        self._since_flush = 0
        self.frames = 0
        """Frames of 20 ms so far."""
        self.heard = Envelope()
        self.said = Envelope()

    def add(self, heard: NDArray[np.float32], said: NDArray[np.float32]) -> None:
        """One frame of each side."""
        self.frames += 1
        self.heard.push(heard)
        self.said.push(said)
        if self._writer is None:
            return
        self._left.append(self._resampler.push(heard))
        self._right.append(said.copy())
        self._since_flush += 1
        if self._since_flush >= FLUSH_FRAMES:
            self._write()

    def _write(self) -> None:
        """Write what both sides have: the resampler's left side is a few milliseconds behind."""
        assert self._writer is not None
        left, right = np.concatenate(self._left), np.concatenate(self._right)
        both = min(left.size, right.size)
        self._writer.write(np.stack([left[:both], right[:both]], axis=1))
        self._left, self._right = [left[both:]], [right[both:]]
        self._since_flush = 0

    def close(self) -> None:
        """Write the rest; the file then holds exactly `frames` frames."""
        if self._writer is None:
            return
        self._left.append(self._resampler.finish())
        missing = self.frames * PLAYBACK_FRAME - self._writer.frames - sum(piece.size for piece in self._left)
        if missing > 0:
            self._left.append(np.zeros(missing, np.float32))
        if self._right:
            self._write()
        self._writer.close()
        self._writer = None
