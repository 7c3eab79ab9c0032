"""Memory for weights and pages: large, aligned, in huge pages where the system gives them.

A step reads all weights once; with small pages the processor would look up some 25,000 of them and its prefetcher
would stop at each border.
"""

from __future__ import annotations

import mmap

import numpy as np

BLOCK = 32 << 20
ALIGNMENT = 64


class Arena:
    """Hands out zeroed uint8 arrays, 64-byte aligned, from blocks of its own.  Memory lives as long as the arrays."""

    def __init__(self) -> None:
        self._block = np.zeros(0, np.uint8)
        self._used = 0

    def take(self, nbytes: int) -> np.ndarray:
        """A zeroed array; untouched memory costs nothing."""
        start = -(-self._used // ALIGNMENT) * ALIGNMENT
        if start + nbytes > len(self._block):
            self._block, start = anonymous(max(BLOCK, nbytes)), 0
        self._used = start + nbytes
        return self._block[start : start + nbytes]


def anonymous(nbytes: int) -> np.ndarray:
    """Zeroed memory straight from the system, asking for huge pages."""
    # 64 spare bytes, since kernels prefetch a little past the end (harmless) and mmap refuses a length of 0.
    area = mmap.mmap(-1, nbytes + ALIGNMENT)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            area.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel built without them
    return np.frombuffer(area, np.uint8)[:nbytes]
