"""Real models: how far the logits are from the fp32 reference on the same file, over fixed prose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kernels
from kernels.contract import ForwardBatch
from kernels.cpu import BACKEND
from tests.kernels.cpu.small import Part, cache_groups, make_batch


def log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def both_on_prose(path: Path, n: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Log-probabilities of every position: ours, the reference's."""
    from assistant.bench.prose import TEXT
    from engine.loading import read_model
    from engine.text.tokenizer import Tokenizer

    file = read_model(path)
    tokens = [int(t) for t in Tokenizer(file.vocabulary).encode(TEXT)][:n]
    groups = cache_groups(file.shape, n // 32 + 1, 32)
    batch: ForwardBatch = make_batch([Part(tokens, 0, list(range(n // 32 + 1)), "all")], groups)
    results = []
    for backend, dtype in ((BACKEND, "float16"), (kernels.pick("reference"), "float32")):
        model = backend.load(file.shape, file.weights)
        results.append(log_softmax(model.forward(batch, model.make_cache(groups, dtype)).copy()))
    return results[0], results[1], tokens


def test_smollm2_keeps_its_distribution_and_perplexity(smollm2_path: Path) -> None:
    """llama.cpp's mean KL on this text is 0.0027."""
    ours, exact, tokens = both_on_prose(smollm2_path, 320)
    divergence = float((np.exp(exact) * (exact - ours)).sum(axis=1).mean())
    assert divergence < 0.0027
    at = (np.arange(len(tokens) - 1), tokens[1:])
    assert abs(np.exp((exact[at] - ours[at]).mean()) - 1) < 0.005


@pytest.mark.slow
def test_gemma3_with_windows_keeps_its_distribution(gemma3_path: Path) -> None:
    """Longer than the window of 512, so that windowed layers forget."""
    ours, exact, tokens = both_on_prose(gemma3_path, 640)
    divergence = (np.exp(exact) * (exact - ours)).sum(axis=1)
    assert divergence[:500].mean() < 0.02 and divergence[520:].mean() < 0.02
    at = (np.arange(len(tokens) - 1), tokens[1:])
    assert abs(np.exp((exact[at] - ours[at]).mean()) - 1) < 0.02
