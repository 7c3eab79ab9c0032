"""Samples between one thread that writes and one callback that reads, without a lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class SampleRing:
    """A ring of float32 samples. One thread calls `write` and `drop`, one other `read_into`.

    Positions only grow: `written` is the writer's, `consumed` the reader's; each side changes its own alone, and
    changes it last. A drop is a wish of the writer's that the reader carries out, so the reader never loses samples
    under its hands:

        written = 960, consumed = 320, drop() -> the next read fades out samples 320... and goes on at 960.
    """

    def __init__(self, capacity: int) -> None:
        self._samples = np.zeros(capacity, np.float32)
        self.written = 0
        self.consumed = 0
        self._keep_from = 0
        """Samples before this one are not wanted any more."""

    @property
    def waiting(self) -> int:
        """Samples that will be read."""
        return self.written - max(self.consumed, self._keep_from)

    def write(self, samples: NDArray[np.float32]) -> int:
        """Append; returns how many did not fit (the newest are left out)."""
        capacity = len(self._samples)
        fits = min(len(samples), capacity - (self.written - self.consumed))
        at = self.written % capacity
        first = min(fits, capacity - at)
        self._samples[at : at + first] = samples[:first]
        self._samples[: fits - first] = samples[first:fits]
        self.written += fits
        return len(samples) - fits

    def drop(self) -> None:
        """Everything written so far is to fade out within the next read and be forgotten."""
        self._keep_from = self.written

    def read_into(self, out: NDArray[np.float32]) -> int:
        """Fill `out`, with silence where there is nothing; returns how many samples were there."""
        fading = self._keep_from > self.consumed
        count = min(len(out), (self._keep_from if fading else self.written) - self.consumed)
        capacity = len(self._samples)
        at = self.consumed % capacity
        first = min(count, capacity - at)
        out[:first] = self._samples[at : at + first]
        out[first:count] = self._samples[: count - first]
        out[count:] = 0.0
        if fading:
            out[:count] *= np.linspace(1.0, 0.0, count, dtype=np.float32)
            self.consumed = self._keep_from
        else:
            self.consumed += count
        return count
