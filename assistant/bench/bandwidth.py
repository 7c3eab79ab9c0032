"""How fast this machine reads memory: what every "bytes over bandwidth" is measured against."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from assistant.bench.sides import Timing, timed


class ReadBandwidth:
    """`threads` threads read an array far larger than the caches; take samples between those of what is compared."""

    def __init__(self, threads: int, megabytes: int = 384) -> None:
        import numba

        # The compiler turns this into plain vector loads.
        @numba.njit(nogil=True)
        def total(words: Any) -> int:
            mixed = 0
            for i in range(len(words)):
                mixed ^= words[i]
            return mixed

        self._total: Any = total
        self._words = np.ones(megabytes * (1 << 20) // 8, np.int64)
        self._parts = np.array_split(self._words, threads)
        total(self._words[:8])

    def sample(self) -> Timing:
        """Bytes a second, once, by the wall clock and by this process's processor time."""

        def read() -> None:
            helpers = [threading.Thread(target=self._total, args=(part,)) for part in self._parts[1:]]
            for helper in helpers:
                helper.start()
            self._total(self._parts[0])
            for helper in helpers:
                helper.join()

        taken, _ = timed(read)
        return Timing(self._words.nbytes / taken.wall, self._words.nbytes / taken.processor)
