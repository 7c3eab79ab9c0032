"""From content to page: the prefix index of one pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.pages.page import Hash, Page, chain


class Found(NamedTuple):
    """The page that agrees longest with the wanted tokens, and for how many positions that are filled."""

    page: Page | None
    valid: int


class PrefixIndex:
    """Pages under their parent's hash and first token; full pages also under their own hash, at most one each.

    Two pages may hold the same beginning while they are partial (two sessions that later part), but when a second page
    becomes full with the hash of a first, it stays out of the index: looking up content must not depend on which of
    two equals is found.
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.by_hash: dict[Hash, Page] = {}
        self.children: dict[tuple[Hash, int], list[Page]] = {}

    def add(self, page: Page) -> None:
        """Make the page findable; a duplicate of a full page stays hidden."""
        if page.indexed or not page.tokens:
            return
        assert page.parent is not None
        if len(page.tokens) == self.page_size:
            name = chain(page.parent, page.tokens)
            if name in self.by_hash:
                return
            page.hash = name
            self.by_hash[name] = page
        self.children.setdefault((page.parent, page.tokens[0]), []).append(page)
        page.indexed = True

    def remove(self, page: Page) -> None:
        """Make the page unfindable; harmless if it is not there."""
        if not page.indexed:
            return
        assert page.parent is not None
        key = (page.parent, page.tokens[0])
        siblings = self.children[key]
        siblings.remove(page)
        if not siblings:
            del self.children[key]
        if page.hash is not None:
            del self.by_hash[page.hash]
        page.hash, page.indexed = None, False

    def completed(self, page: Page) -> None:
        """Called when an indexed page's tokens have just become a full page."""
        assert page.parent is not None
        name = chain(page.parent, page.tokens)
        if name in self.by_hash:
            self.remove(page)
        else:
            page.hash = name
            self.by_hash[name] = page

    def find(self, parent: Hash, tokens: Sequence[int]) -> Found:
        """The best page for `tokens` (up to a page of them) behind `parent`, compared token by token."""
        best = Found(None, 0)
        if not tokens:
            return best
        for page in self.children.get((parent, tokens[0]), ()):
            valid = min(common_prefix(page.tokens, tokens), page.filled)
            if valid > best.valid:
                best = Found(page, valid)
        return best


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning of two token lists."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    for i in range(n):
        if a[i] != b[i]:
            return i
    return n
