"""Prompts of the characters that speak, computed once for all conversations of an engine and kept there.

A conversation begins as a fork of its character's head, and one that changes its character goes on from a fork of the
new one's: what is known is never forwarded again, and its pages cannot be evicted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from engine import Engine, Session
from engine.settings import Priority

MOST = 12
"""Heads that are kept; the one that was not asked for the longest goes first."""


class Heads:
    """Any thread."""

    def __init__(self, engine: Engine, most: int = MOST) -> None:
        self._engine = engine
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, ...], Session] = OrderedDict()
        self.forwarded = 0
        """Tokens computed for all heads so far."""

    def fork(self, ids: Sequence[int]) -> Session:
        """A session that begins with `ids`, sharing the pages of all others that do."""
        key = tuple(ids)
        with self._lock:
            session = self._known.get(key)
            if session is None:
                session = self._engine.new_session()
                try:
                    self.forwarded += session.append(ids).forwarded
                except BaseException:
                    session.close()
                    raise
                session.pin()
                self._known[key] = session
            self._known.move_to_end(key)
            forked = session.fork(priority=Priority.SPEAKING)
            while len(self._known) > self._most:
                self._known.popitem(last=False)[1].close()
        return forked

    def close(self) -> None:
        """Let all heads go; conversations that began with them keep their own share."""
        with self._lock:
            for session in self._known.values():
                session.close()
            self._known.clear()
