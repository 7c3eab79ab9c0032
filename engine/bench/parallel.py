"""Seed 003: eight sequences on one shared prompt, slower as they grow.  What must be read, and what it costs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from engine.bench.variants import forward_replaced, uncomputed
from engine.engine import Engine
from engine.loading import ModelFile
from engine.session import Session
from engine.settings import EngineSettings, Priority, Sampling
from engine.sizing import position_bytes
from kernels.contract import ForwardBatch
from kernels.weights import ModelWeights

MIB = 1024 * 1024


@dataclass(frozen=True)
class ParallelStep:
    """At `step` tokens behind the prompt: median time of a step, and the bytes it must read at least once.

    `bytes` counts each weight and each distinct cached position once; `bytes_one_by_one` counts the shared prompt once
    a sequence, as attention without sharing reads it.
    """

    step: int
    ms: float
    bytes: int
    bytes_one_by_one: int


@dataclass(frozen=True)
class ParallelDecode:
    """Seed 003."""

    sequences: int
    shared_prompt: int
    weight_bytes: int
    steps: list[ParallelStep]


def parallel_decode(
    file: ModelFile,
    settings: EngineSettings,
    sequences: int = 8,
    prompt: int = 1230,
    at: tuple[int, ...] = (40, 80, 280, 440, 2320),
) -> ParallelDecode:
    """Decode in earnest around each mark; the way between marks is bookkeeping only (positions hold zeros).

    Step time does not depend on what the cached numbers are, so the distance need not be computed.
    """
    weights = weight_bytes(file.weights)
    cost = position_bytes(file.shape, file.shape.n_layers, settings.kv_dtype)
    need = int((prompt + sequences * (max(at) + 64)) * cost * 1.1) + 8 * MIB
    with Engine(file, replace(settings, memory_bytes=need)) as engine:
        ids = np.random.default_rng(2).integers(5, file.shape.vocab, prompt).tolist()
        root = engine.new_session(ids)
        branches = [root.fork(priority=Priority.SPEAKING) for _ in range(sequences)]
        steps = []
        for mark in at:
            _skip(engine, branches, prompt + mark - 8)
            ms = _decode(engine, branches, 16)
            context = prompt + mark
            private = sequences * (context - prompt)
            steps.append(
                ParallelStep(
                    mark,
                    ms,
                    weights + int((prompt + private) * cost),
                    weights + int(sequences * context * cost),
                )
            )
        return ParallelDecode(sequences, prompt, weights, steps)


def _decode(engine: Engine, branches: list[Session], n: int) -> float:
    """Median milliseconds of the forwards that served all branches."""
    times: list[float] = []
    forward = engine.scheduler.model.forward

    def timed(batch: ForwardBatch, cache: Any) -> np.ndarray:
        began = time.perf_counter()
        logits = forward(batch, cache)
        if len(batch.context_lens) == len(branches) == len(batch.token_ids):
            times.append(time.perf_counter() - began)
        return logits

    with forward_replaced(engine, timed):
        sampling = Sampling(max_tokens=n, stop_at_end_of_turn=False, temperature=1.0)
        running = [
            branch.generate(replace(sampling, seed=number), priority=Priority.SPEAKING)
            for number, branch in enumerate(branches)
        ]
        for generation in running:
            generation.wait()
    return 1000 * median(times)


def _skip(engine: Engine, branches: list[Session], length: int) -> None:
    random = np.random.default_rng(3)

    with uncomputed(engine):
        for branch in branches:
            missing = length - len(branch)
            branch.append(random.integers(5, engine.shape.vocab, missing).tolist())


def weight_bytes(weights: ModelWeights) -> int:
    """Bytes of the matrices one decode step reads, as the file stores them."""
    total = (weights.lm_head or weights.embed).data.nbytes
    for layer in weights.layers:
        for matrix in (layer.wq, layer.wk, layer.wv, layer.wo, layer.w_gate, layer.w_up, layer.w_down):
            total += matrix.data.nbytes
    return total
