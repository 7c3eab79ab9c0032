"""Prompt lookup: guess the next tokens from an earlier place where the last few were the same.

Replies often repeat the context: a name, a quoted sentence, a list read back.  The guess costs nothing to make; all its
tokens are forwarded in one step with the last real one, and those that are what the sampler chooses anyway are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

LENGTHS = (4, 3, 2)
"""Sizes of the n-grams looked for, longest first: a longer match is more often right."""


class PromptLookup:
    """Remembers where each n-gram of a growing list of ids last ended.  Ids already seen must not change."""

    def __init__(self, most: int) -> None:
        """`most`: the longest guess."""
        self.most = most
        self._seen = 0
        self._ends: dict[tuple[int, ...], int] = {}

    def propose(self, ids: Sequence[int], limit: int) -> list[int]:
        """Up to min(limit, most) ids that may follow; empty if the end of `ids` never occurred before."""
        n = len(ids)
        # The newest n-gram is remembered at the next call: it must not find itself.
        for end in range(max(self._seen, min(LENGTHS)), n):
            for length in LENGTHS:
                if end >= length:
                    self._ends[tuple(ids[end - length : end])] = end
        self._seen = n
        for length in LENGTHS:
            found = self._ends.get(tuple(ids[n - length :])) if n > length else None
            if found is not None:
                return list(ids[found : min(found + min(limit, self.most), n)])
        return []
