"""Continuing a session token by token."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from engine.errors import Cancelled
from engine.jobs import Job, Slot, Usage, Work, prepare_logits
from engine.lookup import PromptLookup
from engine.pages.store import KVStore
from engine.sampling import Sampler
from engine.settings import Sampling
from engine.stream import Stream
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopStrings


class Finish(Enum):
    """Why a generation ended."""

    END_OF_TURN = "end_of_turn"
    LENGTH = "length"
    STOP = "stop"
    CONTEXT = "context"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Token:
    """One generated id.

    `text` is what became readable with it ("" in the middle of a character), `n_ids` the session's length right behind
    it: truncating to `n_ids` keeps exactly this token and everything before.  `logprob` is the model's own, before
    penalties and temperature.
    """

    id: int
    text: str
    n_ids: int
    logprob: float


class GenerateJob(Job):
    """Samples from the row behind the last id, appends, forwards, until something ends it.

    The last sampled token stays pending: it is forwarded with whatever comes next, which is usually the fragment that
    closes the turn.  The end-of-turn token is not appended; the template's closing fragment brings it.
    """

    def __init__(
        self,
        slot: Slot,
        sampling: Sampling,
        detokenizer: Detokenizer,
        stop_ids: frozenset[int],
        *,
        ahead: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(slot, **options)
        self.sampling = sampling
        self.stream: Stream[Token] = Stream()
        self.ahead = ahead
        self.reason: Finish | None = None
        self._sampler = Sampler(sampling)
        self._detokenizer = detokenizer
        self._stop_ids = stop_ids if sampling.stop_at_end_of_turn else frozenset()
        self._stops = StopStrings(sampling.stop)
        self._held: deque[Token] = deque()
        self._free_text = 0  # characters that may be shown but whose token is not complete yet
        self._left = sampling.max_tokens
        self._context = 0
        self._lookup = PromptLookup(sampling.lookup) if sampling.lookup > 0 else None
        self._drafted: int | None = None  # where guessed ids begin in seq.ids; only within one step

    @property
    def paused(self) -> bool:
        return self.ahead is not None and self.stream.backlog >= self.ahead and not self.is_cancelled()

    def wants(self, store: KVStore, budget: int) -> list[Work]:
        if self.paused:
            return []
        self._draft(budget)
        if self._drafted is None:
            return super().wants(store, budget)
        end = len(self.seq.ids)
        return [Work(self, self.seq, end, tuple(range(self._drafted - 1, end)), end)]

    def _draft(self, budget: int) -> None:
        """Put guessed ids behind the one real id that is pending."""
        seq = self.seq
        n = len(seq.ids)
        if self._lookup is None or seq.filled != n - 1:
            return
        limit = min(self._left - 1, self._context - n, budget - 1)
        if self.ahead is not None:
            limit = min(limit, self.ahead - self.stream.backlog - 1)
        guess = self._lookup.propose(seq.ids, limit) if limit > 0 else []
        if guess:
            self._drafted = n
            seq.ids.extend(guess)

    def start(self, store: KVStore, context: int) -> None:
        self._context = context
        prepare_logits(store, self.seq)
        if self._left <= 0:
            self._end(Finish.LENGTH)
        elif self.seq.logits is not None:
            self._sample(store, self.seq.logits)

    def accept(self, store: KVStore, work: Work, logits: np.ndarray) -> None:
        if self._drafted is not None:
            self._verify(store, logits)
        elif work.rows:
            self._sample(store, logits[0])

    def _verify(self, store: KVStore, logits: np.ndarray) -> None:
        """Keep the guessed ids that the sampler chooses too, and the first one that it chooses instead."""
        seq, n = self.seq, self._drafted
        assert n is not None
        guess, right = seq.ids[n:], []
        for i, row in enumerate(logits):
            token, logprob = self._sampler.choose(row, seq.ids[: n + i])
            if i == len(guess) or token != guess[i] or token in self._stop_ids:
                break
            right.append((token, logprob))
        self._drafted = None
        store.truncate(seq, n + len(right))
        for i, (known, known_logprob) in enumerate(right):
            self.slot.generated += 1
            self._left -= 1
            self._show(store, Token(known, self._detokenizer.push(known), n + i + 1, known_logprob))
            if self.done:  # a stop string, which has cut the rest off
                return
        self._take(store, row, token, logprob)

    def _sample(self, store: KVStore, row: np.ndarray) -> None:
        if len(self.seq.ids) >= self._context:
            self._take(store, row, 0, 0.0)
        else:
            self._take(store, row, *self._sampler.choose(row, self.seq.ids))

    def _take(self, store: KVStore, row: np.ndarray, token: int, logprob: float) -> None:
        """Append a chosen token and give it out, unless the context is full or the turn is over."""
        seq = self.seq
        if len(seq.ids) >= self._context:
            seq.logits = row.copy()
            self._end(Finish.CONTEXT)
            return
        if token in self._stop_ids:
            seq.logits = row.copy()
            self._end(Finish.END_OF_TURN)
            return
        seq.ids.append(token)
        seq.logits = None
        self.slot.generated += 1
        self._left -= 1
        self._show(store, Token(token, self._detokenizer.push(token), len(seq.ids), logprob))
        if not self.done and self._left == 0:
            self._end(Finish.LENGTH)

    def _show(self, store: KVStore, token: Token) -> None:
        """Give tokens out as far as their text cannot become part of a stop string."""
        if not self._stops.stops:
            self.stream.push(token)
            return
        self._held.append(token)
        self._free_text += len(self._stops.push(token.text))
        while self._held and len(self._held[0].text) <= self._free_text:
            if not self._held[0].text and self._stops.hit and self._free_text == 0:
                break
            self._free_text -= len(self._held[0].text)
            self.stream.push(self._held.popleft())
        if self._stops.hit:
            self._cut_at_stop(store)

    def _cut_at_stop(self, store: KVStore) -> None:
        """The stop string began inside the first held token or at its beginning: keep it only in the first case."""
        last = self._held[0].n_ids - 1
        if self._free_text:
            first = self._held[0]
            self.stream.push(Token(first.id, first.text[: self._free_text], first.n_ids, first.logprob))
            last = first.n_ids
        self._held.clear()
        store.truncate(self.seq, last)
        self._end(Finish.STOP)

    def _end(self, reason: Finish) -> None:
        self.reason = reason
        while self._held:
            self.stream.push(self._held.popleft())
        self.finish(reason)
        self.stream.end()

    def abort(self, store: KVStore, error: BaseException) -> None:
        """A cancelled generation ends its stream silently and takes back what it never gave out."""
        if self.done:
            return
        if self._drafted is not None:
            store.truncate(self.seq, self._drafted)
            self._drafted = None
        if self._held:
            store.truncate(self.seq, self._held[0].n_ids - 1)
            self._held.clear()
        if isinstance(error, Cancelled):
            self.reason = Finish.CANCELLED
            self.finish(Finish.CANCELLED)
            self.stream.end()
        else:
            super().abort(store, error)
            self.stream.end(error)


class Generation:
    """A running generation: iterate over it, from a thread or with `async for`; `cancel` ends it within one step.

    Breaking out of the loop and dropping the object cancels it as well.
    """

    def __init__(self, job: GenerateJob, nudge: Callable[[], None] = lambda: None) -> None:
        """`nudge` has the worker look at its jobs again: one may have been waiting for its reader."""
        self._job = job
        self._nudge = nudge

    def __iter__(self) -> Iterator[Token]:
        while (token := self._job.stream.get()) is not None:
            self._caught_up()
            yield token

    async def __aiter__(self) -> AsyncIterator[Token]:
        while (token := await self._job.stream.aget()) is not None:
            self._caught_up()
            yield token

    def _caught_up(self) -> None:
        # Only the reader makes the backlog smaller, so the limit is crossed exactly here.
        if self._job.ahead is not None and self._job.stream.backlog == self._job.ahead - 1:
            self._nudge()

    def cancel(self) -> None:
        """Ask for the end; returns at once.  Tokens already given out stay in the session and can still be read."""
        self._job.cancelled = True
        self._nudge()

    def wait(self) -> Finish:
        """Block until the generation is over; raises what it failed with."""
        result: Finish = self._job.future.result()
        return result

    def text(self) -> str:
        """All remaining text, waiting for the end."""
        return "".join(token.text for token in self)

    @property
    def finish(self) -> Finish | None:
        """Why it ended, None while it runs."""
        return self._job.reason

    @property
    def usage(self) -> Usage:
        """Tokens forwarded, referenced and copied by this call so far."""
        return self._job.usage

    def __del__(self) -> None:
        self._job.cancelled = True
