"""`Session`: one growing conversation as token ids, with everything one may do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import EngineError
from engine.generate import GenerateJob, Generation
from engine.jobs import AppendJob, CancelSignal, LogitsJob, Slot, Usage
from engine.pages.index import common_prefix
from engine.settings import Priority, Sampling

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.scoring import SuffixScore


class Session:
    """A token log and the right to extend, shorten, branch and continue it.

    Calls may come from any thread and block until done; those of one session run in the order they were made.  The
    `a...` variants await instead.  `fork`, `score` and `last_logits` do not wait for a running generation: they see
    the session between two of its tokens.
    """

    def __init__(self, engine: Engine, slot: Slot) -> None:
        self._engine = engine
        self._slot = slot

    @property
    def engine(self) -> Engine:
        """The engine the session lives on."""
        return self._engine

    @property
    def slot(self) -> Slot:
        """The worker's side of the session, for code that makes its own jobs."""
        return self._slot

    # ---- looking ----------------------------------------------------------------------------------------------

    @property
    def ids(self) -> list[int]:
        """A copy of the log."""
        return list(self._slot.seq.ids)

    def __len__(self) -> int:
        return len(self._slot.seq.ids)

    @property
    def stats(self) -> Usage:
        """Lifetime counts of all calls that have ended."""
        return self._slot.usage

    @property
    def priority(self) -> Priority:
        """What the session's jobs run at unless they say otherwise."""
        return self._slot.priority

    @property
    def tentative(self) -> int:
        """Number of ids at the end that are not committed yet."""
        mark = self._slot.tentative
        return 0 if mark is None else len(self._slot.seq.ids) - mark

    # ---- growing ----------------------------------------------------------------------------------------------

    def append(
        self, ids: Sequence[int], *, priority: Priority | None = None, cancel: CancelSignal | None = None
    ) -> Usage:
        """Add ids and compute them.  Raises `Cancelled`, `ContextFull`, `OutOfPages`; then nothing was added."""
        usage: Usage = self._engine.worker.submit(self._append_job(ids, priority, cancel, tail=False)).result()
        return usage

    async def aappend(self, ids: Sequence[int], **options: Any) -> Usage:
        """`append` for asyncio."""
        job = self._append_job(ids, options.get("priority"), options.get("cancel"), tail=False)
        usage: Usage = await asyncio.wrap_future(self._engine.worker.submit(job))
        return usage

    def _append_job(
        self, ids: Sequence[int], priority: Priority | None, cancel: CancelSignal | None, tail: bool
    ) -> AppendJob:
        if not tail and self._slot.tentative is not None:
            raise EngineError("The session has a tentative tail: commit or rewind it first.")
        return AppendJob(self._slot, self._checked(ids), priority=priority, cancel=cancel)

    def _checked(self, ids: Sequence[int]) -> list[int]:
        checked, size = [int(i) for i in ids], self._engine.shape.vocab
        if checked and not (0 <= min(checked) and max(checked) < size):
            raise EngineError(f"Token ids must lie in 0..{size - 1}.")
        return checked

    def generate(
        self,
        sampling: Sampling | None = None,
        *,
        priority: Priority | None = None,
        cancel: CancelSignal | None = None,
        ahead: int | None = None,
    ) -> Generation:
        """Continue the session; returns at once, iterate over the result for `Token`s.

        `ahead`: stop computing while so many tokens have not been read (a spoken answer may be dropped any time, and
        other work wants the processor); None computes to the end.

        The ids given out are part of the session.  The end-of-turn token is not: the template's closing fragment
        brings it.
        """
        job = GenerateJob(
            self._slot,
            sampling or Sampling(),
            self._engine.tokenizer.detokenizer(),
            self._engine.tokenizer.stop_ids,
            priority=priority,
            cancel=cancel,
            ahead=ahead,
        )
        self._engine.worker.submit(job)
        return Generation(job, self._engine.worker.nudge)

    # ---- the tentative tail -----------------------------------------------------------------------------------

    def append_tentative(self, ids: Sequence[int], *, cancel: CancelSignal | None = None) -> Usage:
        """Add ids to the tail that may still be taken back (words not yet certain)."""
        self._mark()
        usage: Usage = self._engine.worker.submit(self._append_job(ids, None, cancel, tail=True)).result()
        return usage

    def rewind(self, ids: Sequence[int] = ()) -> int:
        """Cut the tail at the first token that differs from `ids`; returns how many tail tokens stay."""
        wanted = self._checked(ids)

        def cut() -> int:
            slot = self._slot
            if slot.tentative is None:
                return 0
            kept = common_prefix(slot.seq.ids[slot.tentative :], wanted)
            self._engine.store.truncate(slot.seq, slot.tentative + kept)
            return kept

        kept: int = self._engine.worker.call(cut, self._slot)
        return kept

    def revise(self, ids: Sequence[int], *, cancel: CancelSignal | None = None) -> Usage:
        """Make the tail equal to `ids`, computing only from the first differing token on."""
        self._mark()
        kept = self.rewind(ids)
        return self.append_tentative(list(ids)[kept:], cancel=cancel)

    def commit(self) -> None:
        """The tail is part of the log from now on."""

        def keep() -> None:
            self._slot.tentative = None

        self._engine.worker.call(keep, self._slot)

    def _mark(self) -> None:
        def mark() -> None:
            if self._slot.tentative is None:
                self._slot.tentative = len(self._slot.seq.ids)

        self._engine.worker.call(mark, self._slot)

    # ---- shortening and branching -----------------------------------------------------------------------------

    def truncate(self, n: int) -> None:
        """Keep the first `n` ids.  Free at any position; nothing before `n` is computed again."""

        def cut() -> None:
            slot = self._slot
            if not 0 <= n <= len(slot.seq.ids):
                raise EngineError(f"Cannot truncate {len(slot.seq.ids)} ids to {n}.")
            self._engine.store.truncate(slot.seq, n)
            if slot.tentative is not None and n < slot.tentative:
                slot.tentative = None

        self._engine.worker.call(cut, self._slot)

    def fork(self, *, priority: Priority = Priority.DRAFT) -> Session:
        """A second session with the same past on the same pages; either may go on without the other noticing."""
        engine, slot = self._engine, self._slot
        twin: Slot = engine.worker.call(
            lambda: engine.add_slot(engine.store.fork(slot.seq), priority), slot, snapshot=True
        )
        return Session(engine, twin)

    # ---- probing ----------------------------------------------------------------------------------------------

    def last_logits(self) -> np.ndarray:
        """The logits behind the last id, float32 [vocab]; free if that id was the last one computed."""
        row: np.ndarray = self._engine.worker.submit(LogitsJob(self._slot)).result()
        return row

    def score(
        self, suffixes: Sequence[Sequence[int]], *, priority: Priority = Priority.PROBE, **options: Any
    ) -> list[SuffixScore]:
        """Log-probabilities of each suffix behind this session, in one forward, leaving nothing behind.

        See `engine.scoring.ScoreJob` for `top` and `keep_last`.
        """
        from engine.scoring import ScoreJob

        job = ScoreJob(self._slot, [self._checked(s) for s in suffixes], priority=priority, **options)
        result: list[SuffixScore] = self._engine.worker.submit(job).result()
        return result

    async def ascore(self, suffixes: Sequence[Sequence[int]], **options: Any) -> list[SuffixScore]:
        """`score` for asyncio."""
        from engine.scoring import ScoreJob

        options.setdefault("priority", Priority.PROBE)
        job = ScoreJob(self._slot, [self._checked(s) for s in suffixes], **options)
        result: list[SuffixScore] = await asyncio.wrap_future(self._engine.worker.submit(job))
        return result

    # ---- keeping ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write ids, pages and a logits row to a file, atomically; `Engine.load_session` reads it."""
        from engine.saving import save_session

        save_session(self._engine, self._slot, Path(path))

    def shift(self, keep: int, drop: int) -> None:
        """Drop `drop` ids after the first `keep` in place; see `engine.shift` for what that costs in quality.

        Raises `ShiftRefused` for models where it would be wrong.
        """
        from engine.shift import shift_session

        shift_session(self._engine, self._slot, keep, drop)

    def pin(self, pinned: bool = True) -> None:
        """A pinned session's pages are never given up to make room for others."""
        self._slot.pinned = pinned

    def swap(self, other: Session) -> None:
        """Take over another session's ids and pages (a compacted copy) and close it."""
        engine, mine, theirs = self._engine, self._slot, other._slot

        def exchange() -> None:
            if theirs.current is not None or theirs.waiting:
                raise EngineError("The session to swap in is still being computed.")
            mine.seq, theirs.seq = theirs.seq, mine.seq
            mine.tentative = None
            engine.remove_slot(theirs)

        engine.worker.call(exchange, mine)

    def close(self) -> None:
        """Cancel what runs and give the pages back; they stay findable as a prefix until evicted."""
        engine, slot = self._engine, self._slot
        if slot.closed or engine.closed:
            return
        engine.worker.call(slot.cancel_all)  # not in the session's own queue: that is what may be in the way
        engine.worker.call(lambda: engine.remove_slot(slot), slot)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
