"""`PagePool`: the physical pages of one cache group, who holds them and what they contain.

No tensors here: the caller moves bytes, the pool says which page they belong to.  A page is in one of three places:
held (refs > 0), cached (refs 0 but its content can still be found: evictable), or free (nothing worth keeping).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from engine.errors import OutOfPages
from engine.pages.index import Found, PrefixIndex
from engine.pages.page import Hash, Identity, Page


class PagePool:
    """Allocation, reference counts, prefix lookup and eviction over `n_pages` pages."""

    def __init__(self, n_pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.pages = [Page(number) for number in range(n_pages)]
        self.index = PrefixIndex(page_size)
        self._free = list(range(n_pages - 1, -1, -1))
        self._cached: list[tuple[int, int, int]] = []  # heap of (tick, -depth, number), entries may be stale
        self.n_cached = 0
        self.tick = 0
        self.peak_held = 0
        self.evicted = 0

    # ---- counts -----------------------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """Pages that an allocation can get: free ones and cached ones."""
        return len(self._free) + self.n_cached

    @property
    def held(self) -> int:
        """Pages that somebody holds."""
        return len(self.pages) - self.available

    # ---- holding ----------------------------------------------------------------------------------------------

    def allocate(self, n: int, parent_depths: Sequence[tuple[Hash, int]]) -> list[Page]:
        """`n` pages for logical pages with the given (parent hash, depth); all or nothing.

        Takes free pages first, then evicts: the least recently used tree first, its leaves before its trunk.  Held
        pages, the caller's own among them, are never touched.  Raises `OutOfPages` before anything has changed.
        """
        if n > self.available:
            raise OutOfPages(
                f"The cache has {len(self.pages)} pages of {self.page_size} positions, {self.held} are in use and "
                f"{n} more are needed: close sessions, compact them or raise memory_bytes."
            )
        taken = []
        for parent, depth in parent_depths:
            page = self.pages[self._free.pop()] if self._free else self._evict()
            page.refs, page.parent, page.depth = 1, parent, depth
            taken.append(page)
        self.peak_held = max(self.peak_held, self.held)
        return taken

    def _evict(self) -> Page:
        while True:
            tick, depth, number = heapq.heappop(self._cached)
            page = self.pages[number]
            if page.refs == 0 and page.tick == tick and page.filled and page.depth == -depth:
                break
        self.n_cached -= 1
        self.evicted += 1
        assert page.parent is not None
        page.previous = Identity(page.parent, tuple(page.tokens[: page.filled]), page.depth, page.tick)
        self._forget(page)
        return page

    def acquire(self, page: Page) -> None:
        """One more holder."""
        if page.refs == 0:
            self.n_cached -= 1
        page.refs += 1
        self.peak_held = max(self.peak_held, self.held)

    def release(self, page: Page, keep: bool = True) -> None:
        """One holder less.  The last one's page stays findable (`keep`) or is free at once."""
        page.refs -= 1
        if page.refs:
            return
        self.withdraw(page)
        if page.filled == 0 and page.previous is not None:
            self._restore(page)
        elif keep and page.filled and page.indexed:
            page.tick = self.tick
            self._cache(page)
        else:
            self._discard(page)

    def _cache(self, page: Page) -> None:
        heapq.heappush(self._cached, (page.tick, -page.depth, page.number))
        self.n_cached += 1
        if len(self._cached) > 4 * len(self.pages) + 64:
            live = {(p.tick, -p.depth, p.number) for p in self.pages if p.refs == 0 and p.filled}
            self._cached = sorted(live)

    def _restore(self, page: Page) -> None:
        """Nothing was written: the page is again what it was before it was evicted."""
        previous = page.previous
        assert previous is not None
        self._forget(page)
        page.parent, page.tokens, page.filled = previous.parent, list(previous.tokens), len(previous.tokens)
        page.depth, page.tick, page.previous = previous.depth, previous.tick, None
        self.index.add(page)
        if page.indexed:
            self._cache(page)
        else:  # meanwhile an equal page was written elsewhere
            self._discard(page)

    def _discard(self, page: Page) -> None:
        self._forget(page)
        page.previous = None
        self._free.append(page.number)

    def _forget(self, page: Page) -> None:
        self.index.remove(page)
        page.parent, page.tokens, page.filled, page.depth = None, [], 0, 0

    # ---- content ----------------------------------------------------------------------------------------------

    def claim(self, page: Page, tokens: Sequence[int]) -> None:
        """Announce what will be written behind the page's present tokens, so that nobody else writes there.

        Page size 4, page holding [5 6]: claim [7 8] makes its tokens [5 6 7 8] with 2 filled.
        """
        size = self.page_size
        assert len(page.tokens) + len(tokens) <= size
        was_indexed = page.indexed
        page.tokens.extend(tokens)
        if not was_indexed:
            self.index.add(page)
        elif len(page.tokens) == size and page.hash is None:
            self.index.completed(page)

    def withdraw(self, page: Page) -> None:
        """Take back the part of a claim that was never filled."""
        if page.filled < len(page.tokens):
            self.cut(page, page.filled)

    def cut(self, page: Page, n: int) -> None:
        """Forget the tokens from position `n` on; what is written there next is something else."""
        if n >= len(page.tokens):
            return
        self.index.remove(page)
        del page.tokens[n:]
        page.filled = min(page.filled, n)
        self.index.add(page)

    def begin_write(self, page: Page) -> None:
        """The bytes are about to change: the old identity is gone for good."""
        page.previous = None

    def fill(self, page: Page, n: int) -> None:
        """Positions below `n` are valid from now on."""
        assert n <= len(page.tokens)
        page.filled = max(page.filled, n)

    def find(self, parent: Hash, tokens: Sequence[int]) -> Found:
        """See `PrefixIndex.find`."""
        return self.index.find(parent, tokens)

    def touch(self) -> int:
        """Start a new moment: pages released from now on count as more recently used."""
        self.tick += 1
        return self.tick

    def drop_cached(self) -> int:
        """Forget every cached page; returns how many."""
        dropped = 0
        for page in self.pages:
            if page.refs == 0 and page.filled:
                self.n_cached -= 1
                dropped += 1
                self._discard(page)
        self._cached.clear()
        return dropped
