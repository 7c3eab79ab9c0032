"""How much of a sequence the cache already holds, over full and windowed groups together.

A full group must have every page from the beginning; a windowed group only those the next query can see.  Page size 4,
window 6, ids of length 20, pages found in the full group 0 1 2 3, in the windowed group 1 2 3 (0 was evicted)::

    full      0 1 2 3      reaches 16
    windowed  . 1 2 3      at 16 the next query sees 11..15 = pages 2 3: both there
    -> end 16: the full group takes 0 1 2 3, the windowed group 2 3 (and 1, if the slack wants it)
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

from engine.pages.page import Page
from engine.pages.pool import PagePool
from engine.pages.sequence import Sequence
from kernels.contract import ABSENT, CacheGroupSpec


@dataclass(frozen=True)
class Match:
    """Positions below `end` can be taken over; `pages[g]`: logical page -> page to take."""

    end: int
    pages: list[dict[int, Page]]


def find_match(pools: Seq[PagePool], groups: Seq[CacheGroupSpec], seq: Sequence, slack: int | None) -> Match:
    """The longest usable cached continuation of `seq` behind `seq.filled`, leaving at least the last id to forward."""
    size, limit = seq.page_size, len(seq.ids) - 1
    nothing = Match(seq.filled, [{} for _ in pools])
    if limit <= seq.filled:
        return nothing
    views = [_View(pool, spec, g, seq) for g, (pool, spec) in enumerate(zip(pools, groups, strict=True))]
    end = limit
    for view in views:
        if view.window is None:
            end = min(end, view.walk(end))
    windowed = [view for view in views if view.window is not None]
    if end > seq.filled and windowed:
        for view in windowed:
            view.look_up_all(end)
        end = _best_end(windowed, seq, end)
    if end <= seq.filled:
        return nothing
    first, pages = seq.filled // size, []
    for view in views:
        low = first
        if view.window is not None and slack is not None:
            low = max(first, (end - view.window - slack + 1) // size)
        wanted: dict[int, Page] = {}
        for block in range((end - 1) // size, low - 1, -1):
            page, valid = view.found.get(block, (None, 0))
            if page is None or valid < min(size, end - block * size):
                break
            wanted[block] = page
        pages.append(wanted)
    return Match(end, pages)


class _View:
    """What one group offers: `found[block]` is a page and how many of its positions agree and are filled."""

    def __init__(self, pool: PagePool, spec: CacheGroupSpec, g: int, seq: Sequence) -> None:
        self.pool, self.seq, self.g, self.window = pool, seq, g, spec.window
        self.first = seq.filled // seq.page_size
        self.found: dict[int, tuple[Page, int]] = {}

    def own(self, block: int) -> Page | None:
        """The page the sequence holds there now."""
        table = self.seq.tables[self.g]
        return self.pool.pages[table[block]] if block < len(table) and table[block] != ABSENT else None

    def look_up(self, block: int, limit: int) -> int:
        """Find the best page for a logical page, its own one first; returns the positions it is good for."""
        seq = self.seq
        tokens = seq.block_tokens(block, limit)
        page, valid = self.pool.find(seq.parent_hash(block), tokens)
        own = self.own(block) if block == self.first else None
        if own is not None:
            slot, n = seq.filled - block * seq.page_size, min(own.filled, len(tokens))
            while slot < n and own.tokens[slot] == tokens[slot]:
                slot += 1
            if slot >= valid:
                page, valid = own, slot
        if page is not None:
            self.found[block] = (page, valid)
        return valid

    def walk(self, limit: int) -> int:
        """A full group: follow the pages until one does not agree to its end; returns the position reached."""
        size, block = self.seq.page_size, self.first
        while block * size < limit:
            valid = self.look_up(block, limit)
            if valid < size:
                return max(self.seq.filled, min(limit, block * size + valid))
            block += 1
        return limit

    def look_up_all(self, limit: int) -> None:
        """A windowed group: a gap does not matter, later pages may still be there."""
        for block in range(self.first, (limit - 1) // self.seq.page_size + 1):
            self.look_up(block, limit)

    def valid(self, block: int) -> int:
        """Positions of a logical page that could be used."""
        if block < self.first:
            return self.seq.page_size if self.own(block) is not None else 0
        return self.found[block][1] if block in self.found else 0


def _best_end(views: Seq[_View], seq: Sequence, reach: int) -> int:
    """The last position up to `reach` at which every windowed group has one live window."""
    size, last = seq.page_size, (reach - 1) // seq.page_size
    runs = []  # runs[v][block]: full pages in a row that end right before `block`
    for view in views:
        run, counts = 0, []
        for block in range(last + 1):
            counts.append(run)
            run = run + 1 if view.valid(block) == size else 0
        runs.append(counts)
    for block in range(last, seq.filled // size - 1, -1):
        end = min([reach] + [block * size + view.valid(block) for view in views])
        if end <= seq.filled:
            break
        if all(runs[v][block] >= block - max(0, end - (view.window or 0) + 1) // size for v, view in enumerate(views)):
            return end
    return seq.filled
