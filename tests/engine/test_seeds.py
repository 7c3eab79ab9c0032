"""The seed rows on a tiny model: the bookkeeping does not care how large the model is."""

from __future__ import annotations

import numpy as np
import pytest

from engine import EngineSettings
from engine.bench.dynamic import dynamic_generation
from engine.bench.parallel import parallel_decode
from engine.bench.rolling import memory_curve
from tests.engine.tiny import tiny_file


@pytest.fixture(scope="module")
def settings():
    return EngineSettings(device="reference", kv_dtype="float32")


def test_the_worked_example_of_seed_000(settings, big_vocabulary):
    result = dynamic_generation(big_vocabulary, settings, new_tokens=300)
    assert result.first.forwarded == [680, 81, 82] and sum(result.first.forwarded) == 843
    assert result.first.referenced == [0, 512, 512] and result.first.copied == [0, 88, 88]
    assert result.first.pages == 8
    assert result.second.forwarded == [280, 81, 82] and sum(result.second.forwarded) == 443
    assert result.second.referenced == [256, 512, 512] and result.second.copied == [144, 88, 88]
    assert result.second.pages == 8
    growing = result.growing
    assert growing.forwarded_per_round == [1 + 80 + 81 + 82] * growing.rounds
    assert growing.forwarded_at_cleanup < 200 < growing.forwarded_without_reuse


def test_rolling_memory_is_a_seventh_at_32k(settings):
    file = tiny_file((None, None), context=40_000)
    points = memory_curve(file, settings, 4096, 32_768, compute=False)
    assert points[-1].length == 32_768 and points[-1].ring_bytes * 7 <= points[-1].full_bytes
    assert points[-1].ring_bytes == points[-2].ring_bytes, "it has stopped growing"
    assert points[1].ring_bytes == points[1].full_bytes, "below the window both are the same"


def test_bytes_of_parallel_decode_count_the_shared_prompt_once(settings):
    result = parallel_decode(tiny_file(context=8192), settings, sequences=3, prompt=100, at=(20, 40))
    cost = 2 * 2 * 8 * 4
    for step in result.steps:
        assert step.ms > 0
        assert step.bytes == result.weight_bytes + (100 + 3 * step.step) * cost
        assert step.bytes_one_by_one == result.weight_bytes + 3 * (100 + step.step) * cost


@pytest.fixture(scope="module")
def big_vocabulary():
    """Enough tokens that two random texts share no beginning."""
    from dataclasses import replace

    from engine.loading.model_file import Vocabulary

    file = tiny_file(context=4096, vocab=4000)
    tokens = [*file.vocabulary.tokens, *(f"x{i}" for i in range(4000 - len(file.vocabulary.tokens)))]
    types = [*file.vocabulary.types, *[1] * (4000 - len(file.vocabulary.types))]
    vocabulary = Vocabulary(
        tokens=tuple(tokens), merges=file.vocabulary.merges, types=tuple(types), stop_tokens=(2,), pre="gpt-2"
    )
    assert np.size(types) == 4000
    return replace(file, vocabulary=vocabulary, fingerprint="tiny-4000")
