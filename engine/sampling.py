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
        ids, scaled = _candidates(scores, s.top_k, s.temperature)
        order = np.lexsort((ids, -scaled))  # equal scores in order of their ids: the same on every machine
        ids, scaled = ids[order], scaled[order]
        weights = np.exp(scaled - scaled[0])
        if s.top_p < 1.0:
            before = np.cumsum(weights) - weights
            total = float(weights.sum())
            keep = before < s.top_p * total
            ids, weights = ids[keep], weights[keep]
        if s.min_p > 0.0:
            keep = weights >= s.min_p
            ids, weights = ids[keep], weights[keep]
        cumulated = np.cumsum(weights)
        point = self._random.random() * cumulated[-1]
        return int(ids[min(int(np.searchsorted(cumulated, point, side="right")), len(ids) - 1)])


def _candidates(scores: np.ndarray, top_k: int, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Ids that may be drawn and their scores over temperature, float64.

    Sorting a vocabulary costs more than a decode step, so tokens too improbable ever to be drawn are left out first:
    35 below the best after temperature means a probability under 1e-15, less than the draw's own resolution.
    """
    floor = float(scores.max()) - 35.0 * temperature
    ids = np.flatnonzero(scores > floor)
    values = scores[ids]
    if 0 < top_k < len(ids):
        kept = np.argpartition(-values, top_k - 1)[:top_k]
        edge = values[kept].min()
        # Of several tokens tied at the edge the lowest ids stay, or the choice would depend on the partition.
        above, tied = ids[values > edge], ids[values == edge]
        ids = np.concatenate((above, tied[: top_k - len(above)]))
        values = scores[ids]
    return ids, values.astype(np.float64) / temperature
