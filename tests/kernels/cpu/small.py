"""Small random models of every supported kind, and batches for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernels.contract import (
    ABSENT,
    Activation,
    CacheGroupSpec,
    ForwardBatch,
    LayerSpec,
    ModelShape,
    RopeSpec,
)
from kernels.weights import LayerWeights, ModelWeights, WeightTensor

ROPE = RopeSpec(base=10_000.0, dim=32)
LLAMA = ModelShape(
    n_layers=2, hidden=96, n_heads=3, n_kv_heads=1, head_dim=32, ffn=160, vocab=200, norm_eps=1e-5,
    layers=(LayerSpec(ROPE), LayerSpec(ROPE)), tied_embeddings=True,
)
SHAPES = {
    "llama": LLAMA,
    "multi-head": replace(LLAMA, n_kv_heads=3, tied_embeddings=False),
    "qwen2": replace(
        LLAMA, qkv_bias=True, n_heads=4, n_kv_heads=2, head_dim=48, layers=(LayerSpec(replace(ROPE, dim=48)),) * 2
    ),
    "qwen3": replace(LLAMA, qk_norm=True, n_heads=2, head_dim=64, layers=(LayerSpec(replace(ROPE, dim=64)),) * 2),
    "mistral": replace(LLAMA, layers=(LayerSpec(ROPE, window=24),) * 2),
    "gemma3": replace(
        LLAMA, n_layers=3, qk_norm=True, post_norms=True, activation=Activation.GELU_TANH, embed_scale=96**0.5,
        n_heads=4, head_dim=80, attn_scale=0.1,
        layers=(
            LayerSpec(replace(ROPE, dim=80), window=24),
            LayerSpec(replace(ROPE, dim=80, base=1e6, linear=8.0)),
            LayerSpec(replace(ROPE, dim=80), window=24),
        ),
    ),
}


def weights_for(shape: ModelShape, kind: str = "Q8_0", seed: int = 0) -> ModelWeights:
    """Random weights, stored as a GGUF type, "F32", "F16" or "BF16"."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, cols: int) -> WeightTensor:
        values = (rng.standard_normal((rows, cols)) * cols**-0.5).astype(np.float32)
        return stored(values, kind)

    def vector(n: int) -> np.ndarray:
        return (1 + 0.1 * rng.standard_normal(n)).astype(np.float32)

    def optional(n: int, wanted: bool, less: float = 0.0) -> np.ndarray | None:
        return vector(n) - np.float32(less) if wanted else None

    def layer() -> LayerWeights:
        q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        return LayerWeights(
            attn_norm=vector(shape.hidden), ffn_norm=vector(shape.hidden),
            wq=matrix(q, shape.hidden), wk=matrix(kv, shape.hidden), wv=matrix(kv, shape.hidden),
            wo=matrix(shape.hidden, q),
            w_gate=matrix(shape.ffn, shape.hidden), w_up=matrix(shape.ffn, shape.hidden),
            w_down=matrix(shape.hidden, shape.ffn),
            bq=optional(q, shape.qkv_bias, 1), bk=optional(kv, shape.qkv_bias, 1), bv=optional(kv, shape.qkv_bias, 1),
            q_norm=optional(shape.head_dim, shape.qk_norm), k_norm=optional(shape.head_dim, shape.qk_norm),
            post_attn_norm=optional(shape.hidden, shape.post_norms),
            post_ffn_norm=optional(shape.hidden, shape.post_norms),
        )

    return ModelWeights(
        embed=matrix(shape.vocab, shape.hidden), layers=tuple(layer() for _ in range(shape.n_layers)),
        final_norm=vector(shape.hidden), lm_head=None if shape.tied_embeddings else matrix(shape.vocab, shape.hidden),
    )


def stored(values: np.ndarray, kind: str) -> WeightTensor:
    """A matrix as a file of that type would hold it."""
    if kind == "F32":
        return WeightTensor.dense(values)
    if kind == "F16":
        return WeightTensor.dense(values.astype(np.float16))
    from gguf import GGMLQuantizationType, quantize

    raw = quantize(values, GGMLQuantizationType[kind])
    return WeightTensor(raw.view(np.uint8).reshape(len(values), -1), len(values), values.shape[1], kind)


def cache_groups(shape: ModelShape, n_pages: int, page_size: int) -> tuple[CacheGroupSpec, ...]:
    """One group of full layers, one of windowed layers, where there are any."""
    by_window: dict[int | None, list[int]] = {}
    for number, layer in enumerate(shape.layers):
        by_window.setdefault(layer.window, []).append(number)
    return tuple(CacheGroupSpec(tuple(layers), n_pages, page_size, window) for window, layers in by_window.items())


@dataclass
class Part:
    """What one sequence adds to a step: tokens from position `start` on, its pages, which rows' logits."""

    tokens: list[int]
    start: int
    pages: list[int]
    logits: str = "last"


def make_batch(parts: list[Part], groups: tuple[CacheGroupSpec, ...], forget: bool = True) -> ForwardBatch:
    """A batch of several sequences; behind a window pages are absent if `forget`."""
    starts = np.cumsum([0] + [len(p.tokens) for p in parts]).astype(np.int32)
    width = max(len(p.pages) for p in parts)
    tables = []
    for spec in groups:
        table = np.full((len(parts), width), ABSENT, np.int32)
        for i, part in enumerate(parts):
            table[i, : len(part.pages)] = part.pages
            if forget and spec.window is not None:
                table[i, : max(0, part.start - spec.window + 1) // spec.page_size] = ABSENT
        tables.append(table)
    rows: list[int] = []
    for i, part in enumerate(parts):
        rows += range(starts[i], starts[i + 1]) if part.logits == "all" else [starts[i + 1] - 1]
    return ForwardBatch(
        token_ids=np.array([t for p in parts for t in p.tokens], np.int32),
        positions=np.concatenate([np.arange(p.start, p.start + len(p.tokens)) for p in parts]).astype(np.int32),
        seq_starts=starts,
        context_lens=np.array([p.start + len(p.tokens) for p in parts], np.int32),
        block_tables=tuple(tables),
        logit_rows=np.array(rows, np.int32),
    )
