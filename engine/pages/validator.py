"""Checks that really look: every claim the bookkeeping makes is recomputed from the sequences and compared."""

from __future__ import annotations

from collections import Counter

from engine.errors import InvariantBroken
from engine.pages.page import chain
from engine.pages.pool import PagePool
from engine.pages.store import KVStore
from kernels.contract import ABSENT


def check_store(store: KVStore) -> None:
    """Raise `InvariantBroken` naming the first contradiction between sequences, pools and index."""
    size = store.page_size
    for g, pool in enumerate(store.pools):
        owners: Counter[int] = Counter()
        window = store.groups[g].window
        for seq in store.sequences:
            _need(seq.filled <= len(seq.ids), f"{seq.filled} positions filled of {len(seq.ids)} ids")
            _need(seq.reserved[g] >= seq.filled, "reserved lies before filled")
            held = [b for b, number in enumerate(seq.tables[g].tolist()) if number != ABSENT]
            owners.update(seq.tables[g][b] for b in held)
            last = -(-seq.reserved[g] // size)
            _need(
                held == list(range(held[0], last)) if held else seq.reserved[g] == 0, f"gaps in a block table: {held}"
            )
            if window is None or store.slack is None:
                _need(not held or held[0] == 0, "a full group lost its first pages")
            elif held:
                _need(held[0] <= max(0, seq.filled - window + 1) // size, "a live window lost a page")
                _need(
                    held[0] >= max(0, seq.filled - window - store.slack + 1) // size, "a page behind the window is held"
                )
            for b in held:
                page = pool.pages[seq.tables[g][b]]
                n = min(size, seq.filled - b * size)
                _need(page.depth == b, f"page {page.number} has depth {page.depth} at block {b}")
                _need(page.filled >= n, f"page {page.number} has {page.filled} filled, a sequence reads {n}")
                wanted = seq.ids[b * size : b * size + max(n, 0)]
                _need(page.tokens[: max(n, 0)] == wanted, f"page {page.number} holds other tokens than its sequence")
                _need(page.parent == seq.parent_hash(b), f"page {page.number} hangs under the wrong parent")
        check_pool(pool, owners)


def check_pool(pool: PagePool, owners: Counter[int]) -> None:
    """The pool alone, given how often each page number is held."""
    free = pool._free
    _need(len(free) == len(set(free)), "a page is free twice")
    listed: set[int] = set()
    for key, pages in pool.index.children.items():
        for page in pages:
            _need(page.number not in listed, f"page {page.number} is indexed twice")
            listed.add(page.number)
            _need(
                page.indexed and (page.parent, page.tokens[0]) == key,
                f"page {page.number} is indexed under a wrong key",
            )
    hashes: set[bytes] = set()
    cached = 0
    entries = set(pool._cached)
    for page in pool.pages:
        where = f"page {page.number}"
        _need(page.refs == owners[page.number], f"{where} counts {page.refs} holders, {owners[page.number]} hold it")
        _need(page.filled <= len(page.tokens) <= pool.page_size, f"{where} has fill marks beyond its tokens")
        _need(page.indexed == (page.number in listed), f"{where} and the index disagree")
        if page.hash is not None:
            _need(page.hash not in hashes, f"{where} repeats a hash")
            hashes.add(page.hash)
            _need(page.parent is not None and page.hash == chain(page.parent, page.tokens), f"{where} has a stale hash")
            _need(pool.index.by_hash.get(page.hash) is page, f"{where} is not found by its hash")
        if page.indexed and len(page.tokens) == pool.page_size:
            _need(page.hash is not None, f"{where} is full, indexed and unnamed")
        if page.refs == 0:
            _need(page.filled == len(page.tokens), f"{where} is unheld but still claims tokens")
            _need((page.number in free) == (page.filled == 0), f"{where} is neither free nor cached")
            _need(page.previous is None, f"{where} is unheld but remembers an older content")
            if page.filled:
                cached += 1
                _need(page.indexed, f"{where} is cached but cannot be found")
                _need((page.tick, -page.depth, page.number) in entries, f"{where} can never be evicted")
    _need(len(pool.index.by_hash) == len(hashes), "the index names pages that are gone")
    _need(cached == pool.n_cached, f"{cached} pages are cached, the pool counts {pool.n_cached}")


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise InvariantBroken(message)
