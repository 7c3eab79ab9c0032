"""`KVStore`: sequences on pages, over all cache groups of a model.

The only place where bookkeeping (`PagePool`) and bytes (`KVCache`) meet.  All calls come from the engine's worker.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import OutOfPages
from engine.pages.match import Match, find_match
from engine.pages.page import Page
from engine.pages.pool import PagePool
from engine.pages.sequence import Sequence
from kernels.contract import ABSENT, CacheGroupSpec, KVCache


class Attached(NamedTuple):
    """Positions found in the cache: on shared pages, and copied out of partly matching ones."""

    referenced: int
    copied: int


class KVStore:
    """Pages for sequences: find, reserve, advance, truncate, fork, drop.

    `slack` positions behind a window stay held, so that a rollback of that many needs no replay; None keeps all (the
    masked full cache, for comparison).
    """

    def __init__(self, cache: KVCache, slack: int | None) -> None:
        self.cache = cache
        self.groups: tuple[CacheGroupSpec, ...] = cache.groups
        self.page_size = self.groups[0].page_size
        self.pools = [PagePool(spec.n_pages, spec.page_size) for spec in self.groups]
        self.slack = slack
        self.sequences: list[Sequence] = []

    def new(self) -> Sequence:
        """An empty sequence; `drop` it in the end."""
        seq = Sequence(self.page_size, len(self.groups))
        self.sequences.append(seq)
        return seq

    # ---- finding ----------------------------------------------------------------------------------------------

    def match(self, seq: Sequence) -> Match:
        """How far behind `seq.filled` the cache could take the sequence; changes nothing."""
        return find_match(self.pools, self.groups, seq, self.slack)

    def attach(self, seq: Sequence) -> Attached:
        """Take over what the cache holds of ids[filled:-1]; the last token is always left to forward.

        Whole pages are shared.  Of a page that agrees only in part, the agreeing positions are copied to a new page.
        """
        match = self.match(seq)
        if match.end <= seq.filled:
            return Attached(0, 0)
        size, start = self.page_size, seq.filled
        seq.room(-(-match.end // size))
        copied = 0
        try:
            for g, pages in enumerate(match.pages):
                for block, page in sorted(pages.items(), reverse=True):
                    copied = max(copied, self._take(g, seq, block, page, match.end))
        except OutOfPages:
            for g in range(len(self.pools)):
                self._release_from(g, seq, -(-start // size))
            raise
        seq.filled = match.end
        seq.reserved = [match.end] * len(self.pools)
        self._close_gaps(seq)
        self.leave_windows(seq)
        return Attached(match.end - start - copied, copied)

    def _take(self, g: int, seq: Sequence, block: int, page: Page, end: int) -> int:
        """Put `page`, or a copy of its agreeing part, into the sequence's table; returns positions copied."""
        n = min(self.page_size, end - block * self.page_size)
        old, pool, copied = self._page(g, seq, block), self.pools[g], 0
        if old is page:
            return 0
        if n == self.page_size or (page.refs == 0 and len(page.tokens) == n):
            pool.acquire(page)
        else:
            page = self._copy_of(g, page, n, seq, block)
            copied = n - max(0, seq.filled - block * self.page_size)
        if old is not None:
            pool.release(old)
        seq.tables[g][block] = page.number
        return copied

    def _close_gaps(self, seq: Sequence) -> None:
        """What is held of a windowed group is one run of pages: let go of anything before a gap."""
        for g, spec in enumerate(self.groups):
            if spec.window is None:
                continue
            block = (seq.filled - 1) // self.page_size
            while block > seq.first[g] and seq.tables[g][block - 1] != ABSENT:
                block -= 1
            for older in range(seq.first[g], block):
                self._release(g, seq, older)
            seq.first[g] = block

    def _copy_of(self, g: int, source: Page, n: int, seq: Sequence, block: int) -> Page:
        """A new page with the first `n` positions of `source`."""
        pool = self.pools[g]
        pool.acquire(source)  # or the allocation below might evict the very page we copy from
        try:
            (page,) = pool.allocate(1, [(seq.parent_hash(block), block)])
            pool.begin_write(page)
            self.cache.copy_positions(g, source.number, page.number, n)
            pool.claim(page, source.tokens[:n])
            pool.fill(page, n)
        finally:
            pool.release(source)
        return page

    # ---- writing ----------------------------------------------------------------------------------------------

    def reserve(self, seq: Sequence, upto: int, whole: int | None = None) -> int:
        """Hold writable pages for the positions below `upto` and claim their ids; returns positions copied.

        Full groups reserve up to `whole` (default `upto`) at once, so that a prompt that cannot fit fails before its
        first step; windowed groups only step by step, or a long prompt would need its whole length in ring pages.
        A page shared with others is extended in place by the first who gets there: everybody else copies.
        Raises `OutOfPages` and leaves everything as it was.
        """
        before, copied = list(seq.reserved), 0
        for g, spec in enumerate(self.groups):
            goal = upto if spec.window is not None or whole is None else max(upto, whole)
            if goal > seq.reserved[g]:
                try:
                    copied = max(copied, self._reserve_group(g, seq, goal))
                except OutOfPages:
                    self._undo_reserve(seq, before)
                    raise
        return copied

    def _reserve_group(self, g: int, seq: Sequence, goal: int) -> int:
        size, pool, start, copied = self.page_size, self.pools[g], seq.reserved[g], 0
        seq.room(-(-goal // size))
        blocks = range(start // size, (goal - 1) // size + 1)
        missing = [b for b in blocks if seq.tables[g][b] == ABSENT]
        head, slot = self._page(g, seq, blocks[0]), start - blocks[0] * size
        shared = head is not None and head.refs > 1 and len(head.tokens) > slot
        if len(missing) + shared > pool.available:
            raise OutOfPages(
                f"The cache holds {len(pool.pages) * size} positions, {pool.held * size} are in use and {goal - start} "
                "more are needed: close sessions, compact them or raise memory_bytes."
            )
        if head is not None and shared:
            page = self._copy_of(g, head, slot, seq, blocks[0])
            pool.release(head)
            seq.tables[g][blocks[0]], copied = page.number, slot
        elif head is not None:
            pool.cut(head, slot)
        pages = pool.allocate(len(missing), [(seq.parent_hash(b), b) for b in missing])
        for block, page in zip(missing, pages, strict=True):
            seq.tables[g][block] = page.number
        for block in blocks:
            page = pool.pages[seq.tables[g][block]]
            pool.claim(page, seq.ids[block * size + len(page.tokens) : min((block + 1) * size, goal)])
        seq.reserved[g] = goal
        return copied

    def _undo_reserve(self, seq: Sequence, before: list[int]) -> None:
        size = self.page_size
        for g, start in enumerate(before):
            if seq.reserved[g] > start:
                head = self._page(g, seq, start // size)
                if head is not None:
                    self.pools[g].cut(head, start - start // size * size)
                self._release_from(g, seq, -(-start // size))
        seq.reserved = before

    def _withdraw(self, seq: Sequence) -> None:
        """Take back claims that were never filled; only the claimer has any on a page."""
        size = self.page_size
        for g, pool in enumerate(self.pools):
            if seq.reserved[g] <= seq.filled:
                continue  # claims on the page at `filled`, if any, are another holder's
            for block in range(seq.filled // size, -(-seq.reserved[g] // size)):
                page = self._page(g, seq, block)
                if page is not None:
                    pool.withdraw(page)
            seq.reserved[g] = seq.filled

    def begin_write(self, seq: Sequence, upto: int) -> None:
        """The forward is about to write positions filled .. upto - 1."""
        size = self.page_size
        for g, pool in enumerate(self.pools):
            for block in range(seq.filled // size, (upto - 1) // size + 1):
                pool.begin_write(pool.pages[seq.tables[g][block]])

    def advance(self, seq: Sequence, upto: int) -> None:
        """The forward has written positions below `upto`."""
        size = self.page_size
        for g, pool in enumerate(self.pools):
            for block in range(seq.filled // size, (upto - 1) // size + 1):
                pool.fill(pool.pages[seq.tables[g][block]], min(size, upto - block * size))
        seq.filled = upto
        self.leave_windows(seq)

    def leave_windows(self, seq: Sequence) -> None:
        """Let go of pages wholly behind every window and the slack; they stay findable until evicted.

        Window 6, slack 2, page size 4, filled 15: the next query at 15 sees 10..14, a rollback by 2 could ask for 8,
        so pages before 8 // 4 = 2 go: logical pages 0 and 1.
        """
        if self.slack is None:
            return
        for g, spec in enumerate(self.groups):
            if spec.window is None:
                continue
            keep = max(0, seq.filled - spec.window - self.slack + 1) // self.page_size
            if keep > seq.first[g]:
                self.pools[g].touch()  # or pages let go together would be evicted newest first
                for block in range(seq.first[g], keep):
                    self._release(g, seq, block)
                seq.first[g] = keep

    # ---- shortening, sharing, ending --------------------------------------------------------------------------

    def truncate(self, seq: Sequence, n: int) -> None:
        """Keep the first `n` ids.  Nothing is recomputed unless a window has already moved on and been evicted."""
        self.touch()
        seq.cut_ids(n)
        self.unfill(seq, n)

    def unfill(self, seq: Sequence, n: int) -> None:
        """Forget keys and values from position `n` on, not the ids: they will be forwarded again.

        In a windowed group the pages before `n` must be there for the next query; those already let go are looked up
        again by content, and if one is gone the sequence starts from what `attach` finds.
        """
        self._withdraw(seq)
        seq.filled = min(seq.filled, n)
        for g in range(len(self.pools)):
            seq.reserved[g] = seq.filled
            self._release_from(g, seq, -(-seq.filled // self.page_size))
        for g, spec in enumerate(self.groups):
            if spec.window is not None and not self._refill_window(g, seq, spec.window):
                self.release_pages(seq)
                return

    def _refill_window(self, g: int, seq: Sequence, window: int) -> bool:
        size = self.page_size
        low = max(0, seq.filled - window + 1) // size
        for block in range(min(seq.first[g], -(-seq.filled // size)) - 1, low - 1, -1):
            tokens = seq.block_tokens(block, seq.filled)
            page, valid = self.pools[g].find(seq.parent_hash(block), tokens)
            if page is None or valid < len(tokens):
                return False
            self.pools[g].acquire(page)
            seq.tables[g][block] = page.number
            seq.first[g] = block
        return True

    def release_pages(self, seq: Sequence) -> None:
        """Give all pages back but keep the ids: the sequence is cold and is rebuilt at its next use."""
        self.touch()
        self._withdraw(seq)
        for g in range(len(self.pools)):
            self._release_from(g, seq, 0)
            seq.first[g] = seq.reserved[g] = 0
        seq.filled = 0

    def fork(self, seq: Sequence) -> Sequence:
        """A second sequence on the same pages."""
        twin = seq.copy()
        for g, pool in enumerate(self.pools):
            blocks = -(-twin.filled // self.page_size)
            twin.tables[g][blocks:] = ABSENT
            for number in twin.tables[g][:blocks].tolist():
                if number != ABSENT:
                    pool.acquire(pool.pages[number])
        self.sequences.append(twin)
        return twin

    def drop(self, seq: Sequence, keep: bool = True) -> None:
        """End a sequence; its pages stay findable unless `keep` is False."""
        self.touch()
        self._withdraw(seq)
        for g in range(len(self.pools)):
            self._release_from(g, seq, 0, keep)
        self.sequences.remove(seq)

    def touch(self) -> None:
        """See `PagePool.touch`."""
        for pool in self.pools:
            pool.touch()

    def reset_peaks(self) -> None:
        """Begin counting `PagePool.peak_held` anew."""
        for pool in self.pools:
            pool.peak_held = pool.held

    def _held(self, g: int, seq: Sequence, block: int) -> bool:
        return 0 <= block < len(seq.tables[g]) and seq.tables[g][block] != ABSENT

    def _page(self, g: int, seq: Sequence, block: int) -> Page | None:
        return self.pools[g].pages[seq.tables[g][block]] if self._held(g, seq, block) else None

    def _release(self, g: int, seq: Sequence, block: int, keep: bool = True) -> None:
        page = self._page(g, seq, block)
        if page is not None:
            seq.tables[g][block] = ABSENT
            self.pools[g].release(page, keep)

    def _release_from(self, g: int, seq: Sequence, block: int, keep: bool = True) -> None:
        for later in range(len(seq.tables[g]) - 1, max(block, seq.first[g]) - 1, -1):
            self._release(g, seq, later, keep)
        seq.first[g] = min(seq.first[g], block)
