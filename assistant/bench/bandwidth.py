"""How fast this machine reads memory: what every "bytes over bandwidth" is measured against."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

import numpy as np


def read_bandwidth(threads: int, megabytes: int = 384, rounds: int = 7) -> float:
    """Bytes a second that `threads` threads together read from an array far larger than the caches, median."""
    import numba

    # The compiler turns this into plain vector loads.
    @numba.njit(nogil=True, fastmath=True)
    def total(words: Any) -> int:
        mixed = 0
        for i in range(len(words)):
            mixed ^= words[i]
        return mixed

    words = np.ones(megabytes * (1 << 20) // 8, np.int64)
    parts = np.array_split(words, threads)
    total(words[:8])
    taken = []
    for _ in range(rounds):
        helpers = [threading.Thread(target=total, args=(part,)) for part in parts[1:]]
        before = time.perf_counter()
        for helper in helpers:
            helper.start()
        total(parts[0])
        for helper in helpers:
            helper.join()
        taken.append(time.perf_counter() - before)
    return words.nbytes / statistics.median(taken)
