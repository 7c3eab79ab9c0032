"""What the worker can be asked to compute: bring a session up to date, continue it, score continuations of it.

A job never touches the model.  Each step it names the rows it wants forwarded (`wants`), and gets their logits back
(`accept`).  Everything here runs on the worker thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from engine.errors import Cancelled, ContextFull, EngineError
from engine.pages.sequence import Sequence
from engine.pages.store import KVStore
from engine.settings import Priority


class CancelSignal(Protocol):
    """Anything with `is_set`, such as `threading.Event`."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Usage:
    """Tokens of one call: computed now, found on shared pages, copied; context after it.

    Copied are positions of partly matching pages and, on the first write after a fork, of the page both had: the latter
    may belong to ids from before the call.
    """

    forwarded: int = 0
    referenced: int = 0
    copied: int = 0
    context: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.forwarded + other.forwarded,
            self.referenced + other.referenced,
            self.copied + other.copied,
            max(self.context, other.context),
        )


@dataclass(slots=True)
class Work:
    """One sequence's share of a step: forward ids[filled:end], give back the logits behind positions `rows`."""

    job: Job
    seq: Sequence
    end: int
    rows: tuple[int, ...]
    whole: int


@dataclass
class Slot:
    """The worker's side of a session: its sequence, the one job that runs on it and what waits behind that."""

    seq: Sequence
    priority: Priority
    current: Job | None = None
    waiting: list[Any] = field(default_factory=list)
    usage: Usage = Usage()
    generated: int = 0
    tentative: int | None = None
    pinned: bool = False
    closed: bool = False
    used: int = 0

    def cancel_all(self) -> None:
        """Ask the running job and all that wait behind it to end."""
        for job in (self.current, *self.waiting):
            if isinstance(job, Job):
                job.cancelled = True


class Job(ABC):
    """Base: one slot, one future, a priority and a cancel signal."""

    snapshot = False

    def __init__(self, slot: Slot, priority: Priority | None = None, cancel: CancelSignal | None = None) -> None:
        self.slot = slot
        self.priority = slot.priority if priority is None else priority
        self.future: Future[Any] = Future()
        self.cancel_signal = cancel
        self.cancelled = False
        self.attached = False
        self.done = False
        self.usage = Usage()
        self.arrival = 0

    @property
    def seq(self) -> Sequence:
        """The sequence the job brings up to date."""
        return self.slot.seq

    def is_cancelled(self) -> bool:
        """Whether somebody asked for the end; read once a step."""
        return self.cancelled or (self.cancel_signal is not None and self.cancel_signal.is_set())

    @property
    def paused(self) -> bool:
        """Whether the job wants nothing until its reader has caught up."""
        return False

    def start(self, store: KVStore, context: int) -> None:  # noqa: B027 (only a job that appends has any)
        """Called when the session is free for this job: put the ids in place, compute nothing."""

    def attach(self, store: KVStore) -> None:
        """Take what the cache has; called once, before the first rows."""
        found = store.attach(self.seq)
        self.count(referenced=found.referenced, copied=found.copied)
        self.attached = True

    def count(self, **more: int) -> None:
        """Add to this call's usage."""
        self.usage = replace(self.usage, **{key: getattr(self.usage, key) + value for key, value in more.items()})

    def wants(self, store: KVStore, budget: int) -> list[Work]:
        """Rows for the next step, at most about `budget`."""
        return self._pending(budget)

    def _pending(self, budget: int) -> list[Work]:
        seq = self.seq
        total = len(seq.ids)
        if seq.filled >= total:
            return []
        end = min(total, seq.filled + max(1, budget))
        return [Work(self, seq, end, (total - 1,) if end == total else (), total)]

    def postpone(self, store: KVStore, work: Work) -> bool:
        """Take a work back that found no pages beside the job's others; False if it cannot wait."""
        return False

    @abstractmethod
    def accept(self, store: KVStore, work: Work, logits: np.ndarray) -> None:
        """Logits [len(work.rows), vocab] of a work; the array is only good during the call."""

    def finish(self, result: Any) -> None:
        """The job is over and went well."""
        if not self.done:
            self.done = True
            self.usage = replace(self.usage, context=len(self.seq.ids))
            self._close_books()
            self.future.set_result(result)

    def abort(self, store: KVStore, error: BaseException) -> None:
        """The job is over and did not go well: leave nothing half done."""
        if not self.done:
            self.done = True
            self._close_books()
            self.future.set_exception(error)

    def _close_books(self) -> None:
        self.slot.usage += self.usage


class AppendJob(Job):
    """Forward the new ids of a session; on failure the session is as long as before."""

    def __init__(self, slot: Slot, ids: list[int], **options: Any) -> None:
        super().__init__(slot, **options)
        self.ids = ids
        self.before: int | None = None

    def start(self, store: KVStore, context: int) -> None:
        before = len(self.seq.ids)
        if before + len(self.ids) > context:
            raise ContextFull(
                f"{before} + {len(self.ids)} tokens exceed the context of {context}: compact or truncate first."
            )
        self.before = before
        if self.ids:
            self.seq.ids.extend(self.ids)
            self.seq.logits = None
        if self.seq.filled == len(self.seq.ids):
            self.finish(self.usage)

    def accept(self, store: KVStore, work: Work, logits: np.ndarray) -> None:
        if work.rows:
            self.seq.logits = logits[0].copy()
            self.finish(self.usage)

    def finish(self, result: Any) -> None:
        self.usage = replace(self.usage, context=len(self.seq.ids))
        super().finish(self.usage)

    def abort(self, store: KVStore, error: BaseException) -> None:
        if not self.done and self.before is not None:
            store.truncate(self.seq, self.before)
        super().abort(store, error)


class LogitsJob(Job):
    """The logits row behind the last id, forwarding at least that id if the row is not known.

    With `pages` also every key and value: a session that gave its pages up for others is computed again.
    """

    def __init__(self, slot: Slot, pages: bool = False, **options: Any) -> None:
        super().__init__(slot, **options)
        self._pages = pages

    def start(self, store: KVStore, context: int) -> None:
        prepare_logits(store, self.seq, self._pages)
        if self.seq.logits is not None:
            self.finish(self.seq.logits)

    def accept(self, store: KVStore, work: Work, logits: np.ndarray) -> None:
        if work.rows:
            self.seq.logits = logits[0].copy()
            self.finish(self.seq.logits)


def prepare_logits(store: KVStore, seq: Sequence, pages: bool = False) -> None:
    """Make sure that bringing `seq` up to date ends with the logits behind its last id (and, `pages`, takes place)."""
    if not seq.ids:
        raise EngineError("The session is empty: append something first.")
    if pages and seq.filled < len(seq.ids):
        seq.logits = None
    if seq.logits is None and seq.filled == len(seq.ids):
        store.unfill(seq, len(seq.ids) - 1)


def cancelled_error() -> Cancelled:
    """The error a cancelled job ends with."""
    return Cancelled("The job was cancelled.")
