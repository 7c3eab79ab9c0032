"""Which rows go into the next step, and what happens with them.

One screen matters: `step`.  Jobs are taken in order of priority; each names its rows within what is left of the step's
budget; one varlen forward computes them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from engine.errors import EngineError, OutOfPages
from engine.jobs import Job, Slot, Work, cancelled_error
from engine.pages.index import common_prefix
from engine.pages.store import KVStore
from engine.settings import EngineSettings, Priority
from kernels.contract import ABSENT, ForwardBatch, Model


class Pacer:
    """Rows a prefill step may have so that it takes about `step_ms`, learned from the steps before."""

    def __init__(self, settings: EngineSettings) -> None:
        self._fixed = settings.prefill_chunk
        self._step_ms, self._max = settings.step_ms, settings.max_rows
        self._ms_per_row = settings.step_ms / 64

    def rows(self) -> int:
        """The budget of the next step."""
        if self._fixed is not None:
            return self._fixed
        return int(min(self._max, max(16, self._step_ms / self._ms_per_row // 16 * 16)))

    def learn(self, rows: int, seconds: float) -> None:
        """A step of `rows` took `seconds`; small steps say little about the cost of a row."""
        if rows >= 16:
            self._ms_per_row += 0.3 * (seconds * 1000 / rows - self._ms_per_row)


class Scheduler:
    """The running jobs and the step that serves them."""

    def __init__(self, model: Model, store: KVStore, settings: EngineSettings, context: int) -> None:
        self.model, self.store, self.context = model, store, context
        self.pacer = Pacer(settings)
        self.jobs: list[Job] = []
        self.slots: list[Slot] = []
        self.on_done: Callable[[Job], None] = lambda job: None
        self.on_step: Callable[[], None] = lambda: None
        self._arrivals = 0
        self.steps = 0
        self.rows = 0

    # ---- jobs coming and going --------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        """Start a job whose session is free for it."""
        self._arrivals += 1
        job.arrival = job.slot.used = self._arrivals
        try:
            if job.is_cancelled():
                raise cancelled_error()
            job.start(self.store, self.context)
        except EngineError as error:
            job.abort(self.store, error)
        if job.done:
            self.on_done(job)
        else:
            self.jobs.append(job)

    def _drop_done(self) -> None:
        for job in list(self.jobs):
            if not job.done and job.is_cancelled():
                job.abort(self.store, cancelled_error())
            if job.done:
                self._remove(job)

    def _remove(self, job: Job) -> None:
        self.jobs.remove(job)
        self.on_done(job)

    def fail_all(self, error: BaseException) -> None:
        """End every job with `error`."""
        for job in list(self.jobs):
            job.abort(self.store, error)
            self._remove(job)

    # ---- one step ---------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Forward one batch; False if there was nothing to do."""
        self._drop_done()
        works = self._plan()
        if not works:
            self._drop_done()
            return any(not job.paused for job in self.jobs)
        batch = self._batch(works)
        began = time.perf_counter()
        try:
            logits = self.model.forward(batch, self.store.cache)
        except Exception as error:
            self._step_failed(works, error)
            return True
        self.pacer.learn(len(batch.token_ids), time.perf_counter() - began)
        self.steps += 1
        self.rows += len(batch.token_ids)
        at = 0
        for work in works:
            work.job.count(forwarded=work.end - work.seq.filled)
            self.store.advance(work.seq, work.end)
            rows, at = logits[at : at + len(work.rows)], at + len(work.rows)
            if not work.job.done:
                work.job.accept(self.store, work, rows)
        self._drop_done()
        self.on_step()
        return True

    def _step_failed(self, works: list[Work], error: Exception) -> None:
        """A back end that raised may have written anything: nothing of these sequences' pages is trusted."""
        for work in works:
            self.store.release_pages(work.seq)
        for job in {id(work.job): work.job for work in works}.values():
            job.abort(self.store, EngineError(f"The step failed: {error}."))
        self._drop_done()

    def _plan(self) -> list[Work]:
        budget = self.pacer.rows()
        works: list[Work] = []
        order = sorted(self.jobs, key=lambda job: (job.priority, job.arrival)) if len(self.jobs) > 1 else self.jobs[:]
        for job in order:
            if job.done:
                continue
            if works and job.priority is Priority.BACKGROUND and works[0].job.priority is not Priority.BACKGROUND:
                break  # background work is for steps in which nobody else wants anything
            if budget <= 0 and self._wants_many(job):
                continue
            if not job.attached and (self._waits(job) or not self._attach(job)):
                continue
            # Beside work of a higher priority a prompt is read in smaller bites: it must not slow the voice down.
            share = budget if not works or works[0].job.priority == job.priority else max(8, budget // 4)
            planned = len(works)
            for work in job.wants(self.store, share):
                if job.done:
                    break
                if self._reserve(work, later=len(works) > planned):
                    budget -= work.end - work.seq.filled
                    works.append(work)
        # To make room for a later work its own job, or another's, may have been ended: its pages are gone.
        return [work for work in works if not work.job.done]

    def _wants_many(self, job: Job) -> bool:
        return len(job.seq.ids) - job.seq.filled != 1

    def _waits(self, job: Job) -> bool:
        """Whether another job is computing a prefix that this one would otherwise compute again.

        The waiting job lends its priority to the one it waits for.
        """
        ids, have = job.seq.ids, -1
        for leader in self.jobs:
            if leader is job or not leader.attached or leader.done or leader.seq is job.seq:
                continue
            if leader.paused or len(leader.seq.ids) - leader.seq.filled < 2:
                continue  # it reads no prompt now: one token is not worth waiting for a reader who may never come
            shared = min(common_prefix(leader.seq.ids, ids), len(ids) - 1)
            if shared <= leader.seq.filled or shared <= job.seq.filled:
                continue
            if have < 0:
                have = self.store.match(job.seq).end
            if 4 * (shared - have) >= len(ids) - have:
                leader.priority = min(leader.priority, job.priority)
                return True
        return False

    def _attach(self, job: Job) -> bool:
        while True:
            try:
                job.attach(self.store)
                return True
            except OutOfPages as error:
                if not self._make_room(job, error):
                    return False

    def _reserve(self, work: Work, later: bool) -> bool:
        """Get the work its pages; `later`: the job has other work in this step, so this one may wait for the next."""
        while True:
            try:
                copied = self.store.reserve(work.seq, work.end, work.whole)
            except OutOfPages as error:
                if later and work.job.postpone(self.store, work):
                    return False
                if not self._make_room(work.job, error):
                    return False
                continue
            if copied:
                work.job.count(copied=copied)
            self.store.begin_write(work.seq, work.end)
            return True

    def _make_room(self, job: Job, error: OutOfPages) -> bool:
        """Cached pages are gone already.  Idle sessions become cold, then the least important job fails, perhaps `job`.

        A cold session keeps its ids and is computed again when it is next used: slower, but never wrong.
        """
        idle = [
            slot
            for slot in self.slots
            if slot.current is None and not slot.pinned and slot.seq.filled and slot.priority >= job.priority
        ]
        if idle:
            self.store.release_pages(min(idle, key=lambda slot: (-slot.priority, slot.used)).seq)
            return True
        victims = [other for other in self.jobs if not other.done and other.priority > job.priority]
        victim = max(victims, key=lambda other: (other.priority, other.arrival), default=job)
        victim.abort(self.store, error)
        self.store.release_pages(victim.seq)
        return victim is not job

    def _batch(self, works: list[Work]) -> ForwardBatch:
        """Lay the works out as `ForwardBatch` describes."""
        starts, positions = [0], []
        ids: list[int] = []
        contexts: list[int] = []
        rows: list[int] = []
        for work in works:
            begin = work.seq.filled
            ids.extend(work.seq.ids[begin : work.end])
            positions.append(np.arange(begin, work.end, dtype=np.int32))
            rows.extend(starts[-1] + row - begin for row in work.rows)
            starts.append(len(ids))
            contexts.append(work.end)
        size = self.store.page_size
        blocks = -(-max(contexts) // size)
        tables = []
        for g in range(len(self.store.pools)):
            if len(works) == 1:
                tables.append(works[0].seq.tables[g][None, :blocks])
                continue
            table = np.full((len(works), blocks), ABSENT, np.int32)
            for i, work in enumerate(works):
                n = -(-work.end // size)
                table[i, :n] = work.seq.tables[g][:n]
            tables.append(table)
        return ForwardBatch(
            token_ids=np.array(ids, np.int32),
            positions=positions[0] if len(positions) == 1 else np.concatenate(positions),
            seq_starts=np.array(starts, np.int32),
            context_lens=np.array(contexts, np.int32),
            block_tables=tuple(tables),
            logit_rows=np.array(rows, np.int32),
        )
