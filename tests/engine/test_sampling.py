"""Sampling against plain definitions."""

import numpy as np
import pytest

from engine import Sampling
from engine.sampling import Sampler, log_softmax


def plain(logits, s: Sampling) -> np.ndarray:
    """The distribution by the book, over the whole vocabulary."""
    scores = logits.astype(np.float64) / s.temperature
    order = np.argsort(-scores, kind="stable")
    keep = np.ones(len(scores), bool)
    if s.top_k:
        keep[order[s.top_k :]] = False
    p = np.where(keep, np.exp(scores - scores.max()), 0)
    p /= p.sum()
    if s.top_p < 1:
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= s.top_p]] = 0
    if s.min_p > 0:
        p[p < s.min_p * p.max()] = 0
    return p / p.sum()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"top_k": 5},
        {"top_p": 0.7},
        {"top_p": 0.9999},
        {"min_p": 0.1},
        {"top_k": 20, "top_p": 0.8, "min_p": 0.05},
        {"top_k": 1},
        {"top_p": 1e-9},
    ],
)
@pytest.mark.parametrize("size", [50, 640, 3001])
def test_draws_follow_the_distribution(options, size):
    logits = (np.random.default_rng(size).standard_normal(size) * 4).astype(np.float32)
    s = Sampling(temperature=0.9, seed=3, **options)
    sampler, n = Sampler(s), 4000
    counts = np.bincount([sampler.choose(logits, [])[0] for _ in range(n)], minlength=size)
    expected = plain(logits, s)
    assert not counts[expected == 0].any(), "drew what the settings exclude"
    likely = expected > 0.02
    assert np.all(np.abs(counts / n - expected)[likely] < 5 * np.sqrt(expected * (1 - expected) / n)[likely] + 1e-9)


def test_ties_at_the_edge_go_to_the_lowest_ids():
    logits = np.zeros(1000, np.float32)
    logits[500] = 1
    sampler = Sampler(Sampling(temperature=1.0, top_k=3))
    assert {sampler.choose(logits, [])[0] for _ in range(200)} == {500, 0, 1}


def test_greedy_takes_the_best_and_reports_its_own_probability():
    logits = np.array([0.0, 3.0, 1.0], np.float32)
    token, logprob = Sampler(Sampling()).choose(logits, [])
    assert token == 1 and abs(logprob - log_softmax(logits)[1]) < 1e-6


def test_bias_and_penalties():
    logits = np.array([2.0, 1.9, -1.0], np.float32)
    assert Sampler(Sampling(logit_bias={2: 5.0})).choose(logits, [])[0] == 2
    assert Sampler(Sampling(repetition_penalty=1.2)).choose(logits, [0])[0] == 1
    assert Sampler(Sampling(presence_penalty=0.5)).choose(logits, [0])[0] == 1
    assert Sampler(Sampling(presence_penalty=0.5, penalty_last=1)).choose(logits, [0, 2])[0] == 0
    assert list(logits) == [2.0, np.float32(1.9), -1.0], "the caller's row is untouched"


def test_same_seed_same_draws():
    logits = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    s = Sampling(temperature=1.0, seed=11)
    a, b = Sampler(s), Sampler(s)
    assert [a.choose(logits, [])[0] for _ in range(50)] == [b.choose(logits, [])[0] for _ in range(50)]
