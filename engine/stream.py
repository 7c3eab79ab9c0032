"""Items from the worker to whoever waits for them: a plain thread or an asyncio task."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Stream(Generic[T]):
    """An unbounded queue with an end; `get` blocks, `aget` awaits, both may be used on the same stream."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._condition = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    @property
    def backlog(self) -> int:
        """Items nobody has taken yet."""
        return len(self._items)

    def push(self, item: T) -> None:
        """Add an item; ignored once the stream has ended."""
        with self._condition:
            if not self._ended:
                self._items.append(item)
                self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """No more items; `error` is raised to the reader after the last one."""
        with self._condition:
            if not self._ended:
                self._ended, self._error = True, error
                self._wake()

    def _wake(self) -> None:
        self._condition.notify_all()
        if self._waiter is not None:
            (loop, future), self._waiter = self._waiter, None
            try:
                loop.call_soon_threadsafe(_resolve, future)
            except RuntimeError:  # the reader's loop has been closed: nobody is waiting any more
                pass

    def _take(self) -> T | None:
        if self._items:
            return self._items.popleft()
        if self._ended and self._error is not None:
            raise self._error
        return None

    def get(self) -> T | None:
        """The next item, None at the end; raises the error the stream ended with."""
        with self._condition:
            while not self._items and not self._ended:
                self._condition.wait()
            return self._take()

    async def aget(self) -> T | None:
        """`get` for asyncio; one task at a time."""
        while True:
            with self._condition:
                if self._items or self._ended:
                    return self._take()
                loop = asyncio.get_running_loop()
                future: asyncio.Future[None] = loop.create_future()
                self._waiter = (loop, future)
            await future


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
