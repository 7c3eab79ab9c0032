"""The one thread that touches pages and model, and the door through which everybody else reaches it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from engine.errors import EngineError, SessionClosed
from engine.generate import GenerateJob
from engine.jobs import Job, Slot
from engine.scheduler import Scheduler


class Call:
    """A short piece of bookkeeping to run between two steps.

    Calls and jobs of one session run in the order they were asked for; a `snapshot` call does not wait for a running
    generation but sees the session as it is between two of its tokens.
    """

    def __init__(self, run: Callable[[], Any], slot: Slot | None, snapshot: bool = False) -> None:
        self.run, self.slot, self.snapshot = run, slot, snapshot
        self.future: Future[Any] = Future()

    def __call__(self) -> None:
        try:
            self.future.set_result(self.run())
        except Exception as error:
            self.future.set_exception(error)


class Worker:
    """Runs the scheduler until `stop`.  `submit` may be called from any thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        scheduler.on_done = self._job_done
        self._inbox: queue.SimpleQueue[Job | Call | None] = queue.SimpleQueue()
        self._ready: list[Slot] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._failure: EngineError | None = None
        self._thread = threading.Thread(target=self._run, name="crosstalk-engine", daemon=True)
        self._thread.start()

    def submit(self, item: Job | Call) -> Future[Any]:
        """Hand over a job or call; its future has the outcome."""
        with self._lock:
            if self._stopped:
                raise self._failure or SessionClosed("The engine has been closed.")
            self._inbox.put(item)
        return item.future

    def call(self, run: Callable[[], Any], slot: Slot | None = None, snapshot: bool = False) -> Any:
        """Run something on the worker and wait for what it returns."""
        if threading.current_thread() is self._thread:
            return run()
        return self.submit(Call(run, slot, snapshot)).result()

    def nudge(self) -> None:
        """Look at the jobs again: one may have been waiting for its reader, or been cancelled while it did."""
        with self._lock:
            if not self._stopped:
                self._inbox.put(Call(lambda: None, None))

    def stop(self) -> None:
        """End all jobs with `SessionClosed` and the thread with them; a second call does nothing."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._inbox.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # a bug: nobody may be left waiting for a thread that is gone
            with self._lock:
                self._stopped = True
            failure = EngineError(f"The engine's worker stopped: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._failure = failure
            self._end(failure)

    def _serve(self) -> None:
        busy = False
        while True:
            try:
                item = self._inbox.get(block=not busy)
            except queue.Empty:
                busy = self.scheduler.step()
                self._drain()
                continue
            if item is None:
                self._end(SessionClosed("The engine has been closed."))
                return
            self._admit(item)
            self._drain()
            busy = bool(self.scheduler.jobs)

    def _admit(self, item: Job | Call) -> None:
        slot = item.slot
        if slot is not None and slot.closed:
            item.future.set_exception(SessionClosed("The session has been closed."))
        elif slot is None or slot.current is None or (item.snapshot and isinstance(slot.current, GenerateJob)):
            self._start(item, slot)
        else:
            slot.waiting.append(item)

    def _start(self, item: Job | Call, slot: Slot | None) -> None:
        if isinstance(item, Call):
            item()
            self.scheduler.on_step()
            return
        if slot is not None and slot.current is None:
            slot.current = item
        self.scheduler.add(item)

    def _job_done(self, job: Job) -> None:
        if job.slot.current is job:
            job.slot.current = None
            self._ready.append(job.slot)

    def _drain(self) -> None:
        """Start what waited for sessions that have become free."""
        while self._ready:
            slot = self._ready.pop()
            while slot.waiting and slot.current is None:
                self._admit(slot.waiting.pop(0))

    def _end(self, closed: EngineError) -> None:
        self.scheduler.fail_all(closed)
        waiting: list[Any] = [item for slot in self.scheduler.slots for item in slot.waiting]
        while not self._inbox.empty():
            waiting.append(self._inbox.get())
        for item in waiting:
            if isinstance(item, Job):
                item.abort(self.scheduler.store, closed)
            elif item is not None:
                item.future.set_exception(closed)
