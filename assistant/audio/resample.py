"""Change of sample rate for a stream that arrives in blocks of any size."""

from __future__ import annotations

import numpy as np
import soxr

from assistant.audio.errors import AudioError

Pcm = np.ndarray


class StreamResampler:
    """Mono float32 from one rate to another, block by block.

    The output does not depend on how the input was cut into blocks. Until `finish` the output lags
    the input by the filter's delay: a few milliseconds, which is why the low-latency paths ask for
    quality "MQ" or "LQ" and files for "HQ".
    """

    def __init__(self, in_rate: int, out_rate: int, quality: str = "HQ") -> None:
        if in_rate <= 0 or out_rate <= 0:
            raise AudioError(f"A sample rate must be positive, not {in_rate} to {out_rate}.")
        self.in_rate = in_rate
        self.out_rate = out_rate
        self._quality = quality
        self._stream = self._open()

    def _open(self) -> soxr.ResampleStream | None:
        if self.in_rate == self.out_rate:
            return None
        return soxr.ResampleStream(self.in_rate, self.out_rate, 1, dtype="float32", quality=self._quality)

    def push(self, block: Pcm) -> Pcm:
        """Feed one block (float32 [n]); returns what is ready, possibly nothing."""
        return self._run(block, last=False)

    def finish(self) -> Pcm:
        """The rest of the output; afterwards the resampler is ready for a new stream."""
        rest = self._run(np.zeros(0, np.float32), last=True)
        self._stream = self._open()
        return rest

    def _run(self, block: Pcm, *, last: bool) -> Pcm:
        block = np.ascontiguousarray(block, dtype=np.float32)
        if self._stream is None:
            return block
        return np.asarray(self._stream.resample_chunk(block, last=last), dtype=np.float32)


def resample(pcm: Pcm, in_rate: int, out_rate: int) -> Pcm:
    """A whole mono signal at another rate; `len` becomes round(len * out_rate / in_rate) within one."""
    if in_rate == out_rate:
        return np.ascontiguousarray(pcm, dtype=np.float32)
    return np.asarray(
        soxr.resample(pcm.astype(np.float32, copy=False), in_rate, out_rate, quality="HQ"), np.float32
    )
