"""Variants of a loaded model file for measurements: with windows, with fewer layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from engine.engine import Engine
from engine.loading import ModelFile
from kernels.contract import ForwardBatch, LayerSpec


def windowed(file: ModelFile, window: int) -> ModelFile:
    """The same weights with a sliding window in every layer, as Mistral 7B has it."""
    layers = tuple(LayerSpec(layer.rope, window) for layer in file.shape.layers)
    return replace(file, shape=replace(file.shape, layers=layers), fingerprint=f"{file.fingerprint}-window-{window}")


def shallow(file: ModelFile, n_layers: int) -> ModelFile:
    """The first layers only: memory per layer is the same, computing takes a fraction."""
    shape = replace(file.shape, n_layers=n_layers, layers=file.shape.layers[:n_layers])
    weights = replace(file.weights, layers=file.weights.layers[:n_layers])
    return replace(file, shape=shape, weights=weights, fingerprint=f"{file.fingerprint}-layers-{n_layers}")


def longer(file: ModelFile, context: int) -> ModelFile:
    """Allow more positions than the model was trained for (memory figures do not care)."""
    return replace(file, context_length=max(context, file.context_length))


@contextmanager
def forward_replaced(engine: Engine, forward: Any) -> Iterator[None]:
    """Let another function answer the engine's steps for a while."""
    model: Any = engine.scheduler.model
    original = model.forward
    model.forward = forward
    try:
        yield
    finally:
        model.forward = original


@contextmanager
def uncomputed(engine: Engine) -> Iterator[None]:
    """Steps that only do the bookkeeping: pages are held and filled, their numbers mean nothing."""

    def nothing(batch: ForwardBatch, cache: Any) -> np.ndarray:
        return np.zeros((len(batch.logit_rows), engine.shape.vocab), np.float32)

    with forward_replaced(engine, nothing):
        yield
