"""The last seconds of the microphone, addressed by sample count, so that no first word is lost."""

from __future__ import annotations

import numpy as np

from assistant.audio.constants import samples

PRE_ROLL = samples(300)
"""Sound kept before a speech onset: the detector's onset can be 172 ms late."""


class SoundRing:
    """Keeps the newest `capacity` samples of a stream; older ones are overwritten.

    Worked example, capacity 4: after pushing 0 1 2 3 4 5 the ring holds samples 2..5; `slice(1, 5)`
    gives [2 3 4], because sample 1 is gone.
    """

    def __init__(self, capacity: int, at_sample: int = 0) -> None:
        self._ring = np.zeros(capacity, np.float32)
        self._start = at_sample
        self._end = at_sample

    @property
    def end(self) -> int:
        """Count of the sample that comes next."""
        return self._end

    @property
    def oldest(self) -> int:
        """Count of the oldest sample still held."""
        return max(self._start, self._end - len(self._ring))

    def push(self, pcm: np.ndarray) -> None:
        """Append float32 [n]."""
        tail = pcm[-len(self._ring) :]
        first = self._end + len(pcm) - len(tail)
        at = first % len(self._ring)
        head = min(len(tail), len(self._ring) - at)
        self._ring[at : at + head] = tail[:head]
        self._ring[: len(tail) - head] = tail[head:]
        self._end += len(pcm)

    def slice(self, start: int, end: int | None = None) -> np.ndarray:
        """A copy of the samples from `start` up to `end` (or now), as far as they are still held."""
        low = max(start, self.oldest)
        high = self._end if end is None else min(end, self._end)
        if high <= low:
            return np.zeros(0, np.float32)
        return self._ring[np.arange(low, high) % len(self._ring)]

    def since_onset(self, onset: int, pre_roll: int = PRE_ROLL) -> tuple[int, np.ndarray]:
        """(first sample, sound) of an utterance that began at `onset`, pre-roll included."""
        first = max(onset - pre_roll, self.oldest)
        return first, self.slice(first)
