"""Endless conversations: a shorter copy is prepared in idle time and swapped in between two turns.

    ids     [ system prompt | old turns ............ | recent turns | turns since ]
              0      pinned   dropped or summarised    keep_from      prepared up to

The copy holds the system prompt, optionally a summary, and the recent turns, computed again at their new positions, so
it is exactly what a fresh conversation with that history would be.  No turn waits for it: it runs at background
priority, and when it is ready what was said meanwhile is appended and the session takes over its pages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.engine import Engine
from engine.errors import EngineError
from engine.pages.index import common_prefix
from engine.session import Session
from engine.settings import Priority

SummaryHook = Callable[[Session, Sequence[int]], list[int]]
"""Given a fork of the session and the dropped ids, the ids (template fragments included) that stand for them."""


@dataclass(frozen=True)
class CompactionPolicy:
    """When to begin and what to keep, as fractions of the context.

    start_at   fill level at which a copy is prepared
    keep       how much of the context recent turns may take in the copy
    urgent_at  fill level from which a ready copy is swapped even if the last turn must be computed for it on the spot
    """

    start_at: float = 0.6
    keep: float = 0.3
    urgent_at: float = 0.85


@dataclass(frozen=True)
class Compacted:
    """What a swap did: length before and after, ids dropped, tokens computed for it in idle time."""

    before: int
    after: int
    dropped: int
    forwarded: int


class Compactor:
    """Watches one session.

    Call `turn_started` where a turn begins, and `between_turns` as often as you like while nobody has the floor.
    `pinned` is the length of the system prompt and examples, which every copy keeps.
    """

    def __init__(
        self,
        engine: Engine,
        session: Session,
        pinned: int,
        policy: CompactionPolicy | None = None,
        summarise: SummaryHook | None = None,
    ) -> None:
        self.engine, self.session, self.pinned = engine, session, pinned
        self.policy, self.summarise = policy or CompactionPolicy(), summarise
        self.turns: list[int] = []
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._copy: Session | None = None
        self._error: BaseException | None = None
        self._source: list[int] = []  # the ids the copy stands for
        self._keep_from = 0
        self._shift = 0  # how much shorter the copy is

    def turn_started(self) -> None:
        """A turn begins at the session's present end: a place where the history may be cut."""
        self.turns.append(len(self.session))

    def between_turns(self) -> Compacted | None:
        """Swap a finished copy in, or begin one if the session is long enough.

        Computes at most a few tokens itself; anything longer is given to the background and swapped at a later call.
        """
        if self._thread is not None:
            if self._thread.is_alive():
                return None
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            self._drop_copy()
            if not isinstance(error, EngineError):
                raise error
            return None  # no room or cancelled: the conversation goes on, a later call tries again
        if self._copy is not None:
            return self._swap(self._copy)
        self.turns = [at for at in self.turns if at <= len(self.session)]
        if len(self.session) >= self.policy.start_at * self.engine.context:
            self.begin()
        return None

    def begin(self) -> bool:
        """Start preparing a copy now; False if there is nothing to drop or one is under way."""
        room = int(self.policy.keep * self.engine.context)
        keep_from = next((at for at in self.turns if at > self.pinned and len(self.session) - at <= room), None)
        if self._thread is not None or self._copy is not None or keep_from is None:
            return False
        self._source, self._keep_from = self.session.ids, keep_from
        self._run(self._prepare)
        return True

    def _run(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # handed to the caller of between_turns
                self._error = error

        self._thread = threading.Thread(target=guarded, name="crosstalk-compaction", daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        ids, keep_from = self._source, self._keep_from
        summary: list[int] = []
        if self.summarise is not None:
            with self.session.fork(priority=Priority.BACKGROUND) as fork:
                summary = self.summarise(fork, ids[self.pinned : keep_from])
        self._shift = keep_from - self.pinned - len(summary)
        self._copy = self.engine.new_session(priority=Priority.BACKGROUND)
        self._copy.append(ids[: self.pinned] + summary + ids[keep_from:], cancel=self._cancel)

    def _swap(self, copy: Session) -> Compacted | None:
        ids = self.session.ids
        common = common_prefix(ids, self._source)
        if common < self._keep_from:
            self._drop_copy()  # the session was cut back into what the copy has dropped
            return None
        if len(copy) > common - self._shift:
            copy.truncate(common - self._shift)  # a barge-in took the end of the last reply back
        missing = ids[common:]
        urgent = len(ids) > self.policy.urgent_at * self.engine.context
        if len(missing) > _AT_ONCE and not urgent:
            self._source = ids
            self._run(lambda: self._catch_up(copy, missing))
            return None
        copy.append(missing, priority=self.session.priority)
        forwarded = copy.stats.forwarded
        self.session.swap(copy)
        self._copy = None
        self.turns = [at - self._shift for at in self.turns if at >= self._keep_from]
        return Compacted(len(ids), len(ids) - self._shift, self._keep_from - self.pinned, forwarded)

    def _catch_up(self, copy: Session, missing: list[int]) -> None:
        copy.append(missing, cancel=self._cancel)

    def _drop_copy(self) -> None:
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def wait(self) -> None:
        """Block until what is being prepared is ready (tests, and replays whose compute costs no time)."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop preparing; the session itself stays as it is."""
        self._cancel.set()
        self.wait()
        self._thread = None
        self._drop_copy()


_AT_ONCE = 16
"""Tokens a swap may compute itself: about one decode step's time."""
