"""From a row of logits to one token, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.settings import Sampling


def log_sum_exp(logits: np.ndarray) -> float:
    """log of the sum of exp(logits), float32 row of any length."""
    top = float(logits.max())
    return top + float(np.log(np.exp(logits - np.float32(top)).sum(dtype=np.float64)))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities of a row."""
    return logits - np.float32(log_sum_exp(logits))


class Sampler:
    """Chooses tokens for one generation; owns its random stream."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._random = np.random.Generator(np.random.PCG64(sampling.seed)) if sampling.temperature > 0 else None
        self._bias = None
        if sampling.logit_bias:
            self._bias = (
                np.fromiter(sampling.logit_bias.keys(), np.int64),
                np.fromiter(sampling.logit_bias.values(), np.float32),
            )
        self._changes = self._bias is not None or sampling.repetition_penalty != 1.0 or sampling.presence_penalty != 0.0

    def choose(self, logits: np.ndarray, history: Sequence[int]) -> tuple[int, float]:
        """The next token and its log-probability under the model's own (unmodified) distribution.

        `logits` is not changed.
        """
        scores = self._adjusted(logits, history) if self._changes else logits
        token = int(scores.argmax()) if self._random is None else self._draw(scores)
        return token, float(logits[token]) - log_sum_exp(logits)

    def _adjusted(self, logits: np.ndarray, history: Sequence[int]) -> np.ndarray:
        scores, s = logits.copy(), self.sampling
        if self._bias is not None:
            scores[self._bias[0]] += self._bias[1]
        if history and (s.repetition_penalty != 1.0 or s.presence_penalty != 0.0):
            seen = np.unique(np.asarray(history[-s.penalty_last :], np.int64))
            values = scores[seen]
            values = np.where(values > 0, values / s.repetition_penalty, values * s.repetition_penalty)
            scores[seen] = values - np.float32(s.presence_penalty)
        return scores

    def _draw(self, scores: np.ndarray) -> int:
        assert self._random is not None
        s = self.sampling
        scaled = (scores - scores.max()) / np.float32(s.temperature)
        if 0 < s.top_k < len(scaled):
            ids = _best(scaled, s.top_k)
            weights = np.exp(scaled[ids], dtype=np.float64)
            limit = s.top_p * float(weights.sum())
        elif s.top_p < 1.0:
            limit = s.top_p * float(np.exp(scaled).sum(dtype=np.float64))
            ids, weights = _enough(scaled, limit)
        else:  # nothing asks for an order, and sorting a vocabulary costs more than a decode step
            ids, weights, limit = np.arange(len(scaled)), np.exp(scaled, dtype=np.float64), np.inf
        if s.top_p < 1.0:
            keep = np.cumsum(weights) - weights < limit
            ids, weights = ids[keep], weights[keep]
        if s.min_p > 0.0:
            keep = weights >= s.min_p  # the best has weight 1
            ids, weights = ids[keep], weights[keep]
        cumulated = np.cumsum(weights)
        point = self._random.random() * cumulated[-1]
        return int(ids[min(int(np.searchsorted(cumulated, point, side="right")), len(ids) - 1)])


def _best(values: np.ndarray, k: int) -> np.ndarray:
    """Ids of the `k` largest values, largest first, equal ones in order of their ids.

    The k-th largest of the maxima of small blocks is no larger than the k-th largest value, so that only what reaches
    it need be looked at: with blocks of 64, 768 numbers are partitioned instead of 49,152.
    """
    whole = len(values) // 64 * 64
    floor = -np.inf
    if k <= whole // 64:
        floor = np.partition(values[:whole].reshape(-1, 64).max(axis=1), -k)[-k]
    ids = np.flatnonzero(values >= floor)
    return ids[np.argsort(-values[ids], kind="stable")[:k]]


def _enough(scaled: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """The largest values, largest first, and their weights, at least until the weights add up to `limit`."""
    k = 128
    while True:
        ids = _best(scaled, min(k, len(scaled)))
        weights = np.exp(scaled[ids], dtype=np.float64)
        if k >= len(scaled) or float(weights.sum()) >= limit:
            return ids, weights
        k *= 8
