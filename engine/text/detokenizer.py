"""Ids to text one token at a time, without ever breaking a character."""

from __future__ import annotations

import codecs
from collections.abc import Sequence, Set


class Detokenizer:
    """Feeds token bytes through an incremental UTF-8 decoder.

    A four-byte emoji spread over three tokens comes out whole with the third:
    push -> "", push -> "", push -> "\N{SLIGHTLY SMILING FACE}".
    """

    def __init__(self, table: Sequence[bytes], hidden: Set[int]) -> None:
        self._table = table
        self._hidden = hidden
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """Text that became complete with this token, "" for control tokens and unfinished characters."""
        if token in self._hidden or token >= len(self._table):
            return ""
        return self._decoder.decode(self._table[token])

    def finish(self) -> str:
        """What is left of an unfinished character, as U+FFFD."""
        return self._decoder.decode(b"", True)
