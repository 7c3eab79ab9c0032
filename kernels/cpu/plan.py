"""How the attention of a step is divided: chunk sets for decoding rows, strips for prefill rows.

A *chunk* is a fixed stretch of positions (about 128, a whole number of pages or a fraction of one).  A *set* is one
chunk together with all rows that look at it through the same pages: the forks of a prefix, probes, the rows of a short
append.  Its keys and values are read once for all of them.  Which sequences share a chunk is seen from the block
tables alone, so it holds for windowed layers and rings as well.  A *strip* is some consecutive rows of one long
append, taken over all their chunks.
"""

from __future__ import annotations

import numpy as np
from numba import types

CHUNK = 128
"""Positions of a chunk when pages allow it."""


_A1, _A2 = types.Array(types.int32, 1, "C"), types.Array(types.int32, 2, "C")
SIGNATURE = types.UniTuple(types.int64, 3)(
    _A1, _A1, _A2, *[types.int64] * 6, _A2, _A1, _A2, _A1, _A1, _A1
)
"""Of `build`."""


def chunk_length(page_size: int) -> int:
    """Positions of a chunk for a page size: a divisor or a multiple of it, about 128."""
    if page_size % CHUNK == 0:
        return CHUNK
    return page_size * max(1, CHUNK // page_size)


def chunk_slots(page_size: int) -> int:
    """Score slots of a chunk: its positions, each page's share padded to whole blocks of 16."""
    length = chunk_length(page_size)
    share = min(page_size, length)
    return length // share * (-(-share // 16) * 16)


def build(starts, positions, table, page, window, length, split_rows, strip_rows, share, sets, set_rows, strips,
          part_base, first_chunk, last_chunk):
    """Fill the arrays of a plan (compiled); returns (sets, strips, partial results).

    starts int32 [n_seq + 1]; positions int32 [n]; table int32 [n_seq, blocks].  Sequences with up to `split_rows` rows
    go chunk by chunk, longer ones in strips of `strip_rows`.  Without `share` no set holds two sequences.  `sets` must
    hold every (sequence, chunk), `set_rows` every (row, chunk).
    """
    n_seq = len(starts) - 1
    n_sets = n_strips = n_parts = n_listed = 0
    top = -1
    for s in range(n_seq):
        n = starts[s + 1] - starts[s]
        for row in range(starts[s], starts[s + 1]):
            p = positions[row]
            low = max(0, p - window + 1) if window > 0 else 0
            first_chunk[row] = low // length
            last_chunk[row] = p // length
            part_base[row] = -1
            if n <= split_rows:
                part_base[row] = n_parts
                n_parts += last_chunk[row] - first_chunk[row] + 1
                top = max(top, last_chunk[row])
        if n > split_rows:
            for first in range(starts[s], starts[s + 1], strip_rows):
                strips[n_strips, 0] = first
                strips[n_strips, 1] = min(strip_rows, starts[s + 1] - first)
                n_strips += 1
    taken = np.zeros(n_seq, np.bool_)
    for chunk in range(top + 1):
        taken[:] = False
        low_page = chunk * length // page
        for s in range(n_seq):
            n = starts[s + 1] - starts[s]
            if taken[s] or n > split_rows or n == 0:
                continue
            if last_chunk[starts[s + 1] - 1] < chunk or first_chunk[starts[s]] > chunk:
                continue
            first = n_listed
            for other in range(s, n_seq if share else s + 1):
                m = starts[other + 1] - starts[other]
                if taken[other] or m > split_rows or m == 0:
                    continue
                if last_chunk[starts[other + 1] - 1] < chunk or first_chunk[starts[other]] > chunk:
                    continue
                same = True
                if other != s:
                    for block in range(low_page, ((chunk + 1) * length - 1) // page + 1):
                        mine = table[s, block] if block < table.shape[1] else -1
                        theirs = table[other, block] if block < table.shape[1] else -1
                        if mine != theirs:
                            same = False
                            break
                if not same:
                    continue
                taken[other] = True
                for row in range(starts[other], starts[other + 1]):
                    if first_chunk[row] <= chunk <= last_chunk[row]:
                        set_rows[n_listed] = row
                        n_listed += 1
            sets[n_sets, 0] = chunk
            sets[n_sets, 1] = first
            sets[n_sets, 2] = n_listed - first
            sets[n_sets, 3] = s
            n_sets += 1
    return n_sets, n_strips, n_parts
