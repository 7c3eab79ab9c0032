"""Tiny random models: everything the big ones have, in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from engine import Engine, EngineSettings
from engine.loading.model_file import ModelFile, Vocabulary
from kernels.contract import Activation, LayerSpec, ModelShape, RopeSpec
from kernels.weights import LayerWeights, ModelWeights, WeightTensor

VOCAB = 64


def tiny_shape(windows: tuple[int | None, ...] = (None, None), **changes: Any) -> ModelShape:
    """A model of len(windows) layers, hidden 16, two heads on one key/value head."""
    rope = RopeSpec(10000.0, 8)
    values: dict[str, Any] = dict(
        n_layers=len(windows),
        hidden=16,
        n_heads=2,
        n_kv_heads=1,
        head_dim=8,
        ffn=24,
        vocab=VOCAB,
        norm_eps=1e-5,
        layers=tuple(LayerSpec(rope, window) for window in windows),
        activation=Activation.SILU,
        tied_embeddings=True,
    )
    return ModelShape(**(values | changes))


def random_weights(shape: ModelShape, seed: int = 0) -> ModelWeights:
    """Weights large enough that every token changes the logits visibly."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, cols: int) -> WeightTensor:
        return WeightTensor.dense((random.standard_normal((rows, cols)) * 1.5 / cols**0.5).astype(np.float32))

    def vector(size: int) -> np.ndarray:
        return (1 + 0.1 * random.standard_normal(size)).astype(np.float32)

    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    layers = tuple(
        LayerWeights(
            attn_norm=vector(shape.hidden),
            wq=matrix(q, shape.hidden),
            wk=matrix(kv, shape.hidden),
            wv=matrix(kv, shape.hidden),
            wo=matrix(shape.hidden, q),
            ffn_norm=vector(shape.hidden),
            w_gate=matrix(shape.ffn, shape.hidden),
            w_up=matrix(shape.ffn, shape.hidden),
            w_down=matrix(shape.hidden, shape.ffn),
        )
        for _ in range(shape.n_layers)
    )
    return ModelWeights(matrix(shape.vocab, shape.hidden), layers, vector(shape.hidden))


def tiny_vocabulary() -> Vocabulary:
    """64 tokens: a byte-level BPE of ASCII letters and a few merges; 0..3 are control tokens."""
    control = ["<|end|>", "<|im_start|>", "<|im_end|>", "<pad>"]
    letters = (
        [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("ABCDEFGHIJKLMNOPQRSTUV.,:?!") + ["\u0120", "\u010a"]
    )
    merges = ["t h", "th e", "\u0120 a", "i n", "o n"]
    tokens = control + letters + [merge.replace(" ", "") for merge in merges]
    assert len(tokens) == VOCAB, len(tokens)
    types = [3] * len(control) + [1] * (VOCAB - len(control))
    return Vocabulary(
        tokens=tuple(tokens), merges=tuple(merges), types=tuple(types), eos=2, bos=1, stop_tokens=(2,), pre="gpt-2"
    )


def tiny_file(
    windows: tuple[int | None, ...] = (None, None), seed: int = 0, context: int = 4096, **changes: Any
) -> ModelFile:
    """A loaded model file without a file."""
    shape = tiny_shape(windows, **changes)
    return ModelFile(
        path=Path("tiny"),
        name="tiny",
        architecture="llama",
        shape=shape,
        weights=random_weights(shape, seed),
        vocabulary=tiny_vocabulary(),
        chat_template=None,
        context_length=context,
        fingerprint=f"tiny-{windows}-{seed}",
    )


def tiny_engine(
    windows: tuple[int | None, ...] = (None, None), *, file: ModelFile | None = None, **settings: Any
) -> Engine:
    """An engine on the exact reference back end that checks its bookkeeping after every operation."""
    values: dict[str, Any] = dict(
        device="reference-exact", kv_dtype="float32", page_size=4, memory_bytes=1 << 17, validate=True, window_slack=4
    )
    return Engine(file or tiny_file(windows), EngineSettings(**(values | settings)))


def fresh_logits(file: ModelFile, ids: list[int]) -> np.ndarray:
    """The slow oracle: the logits behind `ids`, computed from nothing, no page ever reused."""
    from kernels import pick
    from kernels.contract import CacheGroupSpec, ForwardBatch

    shape = file.shape
    windows = sorted({layer.window for layer in shape.layers}, key=lambda w: -1 if w is None else w)
    groups = tuple(
        CacheGroupSpec(tuple(i for i, layer in enumerate(shape.layers) if layer.window == w), 1, len(ids), w)
        for w in windows
    )
    key = file.fingerprint
    if key not in _MODELS:
        _MODELS[key] = pick("reference-exact").load(shape, file.weights)
    model = _MODELS[key]
    n = len(ids)
    batch = ForwardBatch(
        token_ids=np.array(ids, np.int32),
        positions=np.arange(n, dtype=np.int32),
        seq_starts=np.array([0, n], np.int32),
        context_lens=np.array([n], np.int32),
        block_tables=tuple(np.zeros((1, 1), np.int32) for _ in groups),
        logit_rows=np.array([n - 1], np.int32),
    )
    return model.forward(batch, model.make_cache(groups, "float32"))[0]


_MODELS: dict[str, Any] = {}
