"""Scoring continuations of a live prefix: many short suffixes, one forward, nothing left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.jobs import Job, Slot, Work, prepare_logits
from engine.pages.sequence import Sequence as Tokens
from engine.pages.store import KVStore
from engine.sampling import log_softmax


@dataclass(frozen=True)
class SuffixScore:
    """One suffix behind the prefix.

    logprobs  log-probability of each of its tokens, float32 [len(suffix)]
    greedy    whether each token was the model's first choice
    top       for each position asked for, (ids, logprobs) of the best alternatives there
    last      logits behind the suffix, if asked for
    """

    logprobs: np.ndarray
    greedy: bool
    top: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    last: np.ndarray | None = None

    @property
    def total(self) -> float:
        """Log-probability of the whole suffix."""
        return float(self.logprobs.sum(dtype=np.float64))


class ScoreJob(Job):
    """Forward the prefix if it is not up to date, then all suffixes as forks of it in one varlen step.

    Suffixes of lengths 1, 3 and 2 need 0 + 2 + 1 rows: the first token of each is judged by the prefix's own row, and
    the last one needs no row of its own unless `keep_last`.

    top         how many alternatives to report
    positions   at which positions of each suffix (default: all)
    keep_last   also return the logits behind each suffix
    """

    snapshot = True

    def __init__(
        self,
        slot: Slot,
        suffixes: list[list[int]],
        *,
        top: int = 0,
        positions: Sequence[int] | None = None,
        keep_last: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(slot, **options)
        self.suffixes = suffixes
        self._top, self._positions, self._keep_last = top, positions, keep_last
        self._prefix: Tokens | None = None
        self._own_fork = False
        self._forks: dict[int, Tokens] = {}
        self._waiting = list(range(len(suffixes)))
        self._rows: list[np.ndarray | None] = [None] * len(suffixes)
        self._scores: list[SuffixScore | None] = [None] * len(suffixes)

    @property
    def seq(self) -> Tokens:
        return self._prefix if self._prefix is not None else self.slot.seq

    def start(self, store: KVStore, context: int) -> None:
        if self.slot.current is not self:
            # The session is being continued at this moment: judge a fork of what is there now.
            self._prefix, self._own_fork = store.fork(self.slot.seq), True
        prepare_logits(store, self.seq, pages=True)
        self._settle(store)

    def _settle(self, store: KVStore) -> None:
        """Score what needs no row beyond the prefix's; end when nothing is left."""
        row = self.seq.logits
        if row is not None:
            for i in list(self._waiting):
                if self._rows_needed(i) == 0:
                    self._waiting.remove(i)
                    self._score(i, row, np.zeros((0, len(row)), np.float32))
        if all(score is not None for score in self._scores):
            result = self._scores
            self._leave(store)
            self.finish(result)

    def _rows_needed(self, i: int) -> int:
        return max(0, len(self.suffixes[i]) - (0 if self._keep_last else 1))

    def wants(self, store: KVStore, budget: int) -> list[Work]:
        if self.seq.logits is None:
            return self._pending(budget)
        works: list[Work] = []
        used = 0
        begin = len(self.seq.ids)
        for i in list(self._waiting):
            n = self._rows_needed(i)
            if works and used + n > max(budget, 64):
                break
            fork = store.fork(self.seq)
            fork.ids.extend(self.suffixes[i][:n])
            fork.logits = None
            self._forks[i] = fork
            self._waiting.remove(i)
            works.append(Work(self, fork, begin + n, tuple(range(begin, begin + n)), begin + n))
            used += n
        return works

    def postpone(self, store: KVStore, work: Work) -> bool:
        if work.seq is self.seq:
            return False
        i = self._suffix_of(work)
        store.drop(self._forks.pop(i), keep=False)
        self._waiting.insert(0, i)
        return True

    def _suffix_of(self, work: Work) -> int:
        return next(number for number, fork in self._forks.items() if fork is work.seq)

    def accept(self, store: KVStore, work: Work, logits: np.ndarray) -> None:
        if work.seq is self.seq:
            if work.rows:
                self.seq.logits = logits[0].copy()
                self._settle(store)
            return
        i = self._suffix_of(work)
        row = self.seq.logits
        assert row is not None
        self._score(i, row, logits)
        store.drop(self._forks.pop(i), keep=False)
        self._settle(store)

    def _score(self, i: int, first: np.ndarray, later: np.ndarray) -> None:
        suffix = self.suffixes[i]
        values, greedy, top = np.zeros(len(suffix), np.float32), True, {}
        for k, token in enumerate(suffix):
            row = first if k == 0 else later[k - 1]
            logprobs = log_softmax(row)
            values[k] = logprobs[token]
            greedy = greedy and int(row.argmax()) == token
            if self._top and (self._positions is None or k in self._positions):
                best = np.argpartition(-logprobs, self._top)[: self._top]
                best = best[np.argsort(-logprobs[best], kind="stable")]
                top[k] = (best, logprobs[best])
        last = None
        if self._keep_last:
            last = (later[-1] if len(suffix) else first).copy()
        self._scores[i] = SuffixScore(values, greedy, top, last)

    def _leave(self, store: KVStore) -> None:
        for fork in self._forks.values():
            store.drop(fork, keep=False)
        self._forks.clear()
        if self._own_fork and self._prefix is not None:
            store.drop(self._prefix)
            self._own_fork = False

    def abort(self, store: KVStore, error: BaseException) -> None:
        if not self.done:
            self._leave(store)
        super().abort(store, error)
