"""One token log and the pages that hold its keys and values."""

from __future__ import annotations

import os

import numpy as np

from engine.pages.page import ROOT, Hash, chain
from kernels.contract import ABSENT


class Sequence:
    """`ids` is the truth; the pages are a cache of it that may be dropped and rebuilt at any time.

    Ranges, for page size 4, ids of length 11, filled 9, reserved 11::

        position  0 1 2 3 | 4 5 6 7 | 8 9 10 .
        filled    * * * *   * * * *   * . .        keys and values are there (per group: from the window on)
        reserved  * * * *   * * * *   * * *        pages are held and their tokens claimed (one number a group)
        ids       * * * *   * * * *   * * *        pending = ids[filled:] = 2 tokens still to forward

    `tables[g][l]` is the physical page of logical page l in cache group g, ABSENT behind a window or where nothing is
    held; `first[g]` is the lowest logical page held.  `logits` is the row behind the last id, if it is known.
    """

    __slots__ = ("page_size", "ids", "filled", "reserved", "tables", "first", "logits", "salted", "_hashes")

    def __init__(self, page_size: int, n_groups: int) -> None:
        self.page_size = page_size
        self.ids: list[int] = []
        self.filled = 0
        self.reserved = [0] * n_groups
        self.tables = [np.full(16, ABSENT, np.int32) for _ in range(n_groups)]
        self.first = [0] * n_groups
        self.logits: np.ndarray | None = None
        self.salted: int | None = None
        self._hashes: list[Hash] = [ROOT]

    def parent_hash(self, block: int) -> Hash:
        """Name of everything before logical page `block`: the parent under which that page is indexed."""
        size, hashes = self.page_size, self._hashes
        while len(hashes) <= block:
            done = len(hashes) - 1
            hashes.append(chain(hashes[done], self.ids[done * size : (done + 1) * size]))
        return hashes[block]

    def salt(self, block: int, secret: bytes | None = None) -> None:
        """Give the pages from `block` on names nobody else can have: their content does not follow from the ids."""
        self.parent_hash(block)
        self._hashes[block:] = [secret or os.urandom(16)]
        self.salted = block

    def block_tokens(self, block: int, end: int) -> list[int]:
        """The ids of a logical page, not beyond position `end`."""
        return self.ids[block * self.page_size : min((block + 1) * self.page_size, end)]

    def room(self, blocks: int) -> None:
        """Make the tables long enough for `blocks` logical pages."""
        for g, table in enumerate(self.tables):
            if len(table) < blocks:
                grown = np.full(max(blocks, 2 * len(table)), ABSENT, np.int32)
                grown[: len(table)] = table
                self.tables[g] = grown

    def cut_ids(self, n: int) -> None:
        """Shorten the log; the caller sees to the pages."""
        if n < len(self.ids):
            del self.ids[n:]
            del self._hashes[n // self.page_size + 1 :]
            if self.salted is not None and self.salted >= len(self._hashes):
                self.salted = None
            self.logits = None

    def copy(self) -> Sequence:
        """The same log and tables; the caller acquires the pages."""
        twin = Sequence(self.page_size, len(self.tables))
        twin.ids, twin.filled, twin.reserved = list(self.ids), self.filled, [self.filled] * len(self.tables)
        twin.tables = [table.copy() for table in self.tables]
        twin.first, twin.logits, twin._hashes = list(self.first), self.logits, list(self._hashes)
        twin.salted = self.salted
        return twin
