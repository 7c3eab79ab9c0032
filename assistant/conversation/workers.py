"""Where slow work runs: on threads when time is real, in place when time is virtual.

The conversation hands a job to a lane and gets its result back on its own thread, so that no state is shared. A lane
runs its jobs one after the other: `EARS` transcribes, `MIND` owns the session, the engine and the voice.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol


class Lane(Enum):
    """A queue of jobs that run one after the other."""

    EARS = "ears"
    MIND = "mind"


@dataclass(frozen=True)
class Done:
    """A finished job: call `deliver` on the conversation's thread."""

    receive: Callable[[Any], None]
    result: Any
    error: BaseException | None

    def deliver(self, on_error: Callable[[BaseException], None]) -> None:
        """Hand the result to who asked for it, or the error to `on_error`."""
        if self.error is not None:
            on_error(self.error)
        else:
            self.receive(self.result)


class Workers(Protocol):
    """The two ways of running jobs."""

    inline: bool
    """Jobs run in place, and take no time on the audio clock."""

    def submit(self, lane: Lane, job: Callable[[], Any], receive: Callable[[Any], None]) -> None:
        """Queue `job` on `lane`; `receive(result)` is called from `Done.deliver`."""

    def finished(self) -> list[Done]:
        """Results that came in since the last call, oldest first."""

    def close(self) -> None:
        """Wait for the running jobs and forget the queued ones."""


def _run(job: Callable[[], Any], receive: Callable[[Any], None]) -> Done:
    try:
        return Done(receive, job(), None)
    except Exception as error:  # noqa: BLE001 - whatever a model raises must reach the conversation, not kill a lane
        return Done(receive, None, error)


class InlineWorkers:
    """Runs each job at once: compute takes no time on the audio clock, and every run is the same."""

    inline = True

    def __init__(self) -> None:
        self._done: deque[Done] = deque()

    def submit(self, lane: Lane, job: Callable[[], Any], receive: Callable[[Any], None]) -> None:
        """See `Workers.submit`."""
        self._done.append(_run(job, receive))

    def finished(self) -> list[Done]:
        """See `Workers.finished`."""
        done = list(self._done)
        self._done.clear()
        return done

    def close(self) -> None:
        """Nothing runs in the background."""


class ThreadWorkers:
    """One thread a lane. `wake` is called from a lane's thread whenever a result is there."""

    inline = False

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._wake = wake
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._jobs: dict[Lane, queue.SimpleQueue] = {lane: queue.SimpleQueue() for lane in Lane}
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), name=f"crosstalk-{lane.value}", daemon=True)
            for lane in Lane
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, lane: Lane) -> None:
        jobs = self._jobs[lane]
        while True:
            item = jobs.get()
            if item is None:
                return
            if self._closing.is_set():
                continue
            self._done.put(_run(*item))
            self._wake()

    def submit(self, lane: Lane, job: Callable[[], Any], receive: Callable[[Any], None]) -> None:
        """See `Workers.submit`."""
        self._jobs[lane].put((job, receive))

    def finished(self) -> list[Done]:
        """See `Workers.finished`."""
        done = []
        while not self._done.empty():
            done.append(self._done.get())
        return done

    def close(self) -> None:
        """See `Workers.close`."""
        self._closing.set()
        for lane in Lane:
            self._jobs[lane].put(None)
        for thread in self._threads:
            thread.join()
