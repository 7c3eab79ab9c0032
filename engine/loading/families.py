"""What distinguishes the model families, from either file format: sizes in, `ModelShape` out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.errors import UnsupportedModelError
from kernels.contract import Activation, LayerSpec, ModelShape, RopeSpec


class Family(Enum):
    """The families whose layers this engine can compute."""

    LLAMA = "llama"
    MISTRAL = "mistral"
    QWEN2 = "qwen2"
    QWEN3 = "qwen3"
    GEMMA3 = "gemma3"


_NAMES = {
    "llama": Family.LLAMA,
    "mistral": Family.MISTRAL,
    "qwen2": Family.QWEN2,
    "qwen3": Family.QWEN3,
    "gemma3": Family.GEMMA3,
    "gemma3_text": Family.GEMMA3,
}


def family_of(architecture: str) -> Family:
    """The family of an architecture name as GGUF or Hugging Face spell it."""
    try:
        return _NAMES[architecture]
    except KeyError:
        known = ", ".join(sorted({family.value for family in Family}))
        raise UnsupportedModelError(
            f"The architecture {architecture!r} is not supported; this engine knows {known}."
        ) from None


@dataclass(frozen=True)
class Sizes:
    """The numbers both formats give, under one set of names.

    `windows` has one entry a layer (None: full attention).  `rope` applies to full layers, `rope_local` to windowed
    ones where the family distinguishes them (Gemma 3).
    """

    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    norm_eps: float
    windows: tuple[int | None, ...]
    rope: RopeSpec
    rope_local: RopeSpec | None = None
    attn_scale: float = 0.0
    tied_embeddings: bool = False
    qkv_bias: bool | None = None


def build_shape(family: Family, sizes: Sizes) -> ModelShape:
    """The family's fixed traits around the file's numbers."""
    local = sizes.rope_local or sizes.rope
    layers = tuple(LayerSpec(sizes.rope if window is None else local, window) for window in sizes.windows)
    gemma = family is Family.GEMMA3
    return ModelShape(
        n_layers=sizes.n_layers,
        hidden=sizes.hidden,
        n_heads=sizes.n_heads,
        n_kv_heads=sizes.n_kv_heads,
        head_dim=sizes.head_dim,
        ffn=sizes.ffn,
        vocab=sizes.vocab,
        norm_eps=sizes.norm_eps,
        layers=layers,
        activation=Activation.GELU_TANH if gemma else Activation.SILU,
        qkv_bias=family is Family.QWEN2 if sizes.qkv_bias is None else sizes.qkv_bias,
        qk_norm=family in (Family.QWEN3, Family.GEMMA3),
        post_norms=gemma,
        embed_scale=sizes.hidden**0.5 if gemma else 1.0,
        attn_scale=sizes.attn_scale,
        tied_embeddings=sizes.tied_embeddings,
    )


def gemma3_windows(n_layers: int, window: int, pattern: int = 6) -> tuple[int | None, ...]:
    """Every `pattern`-th layer attends to everything: with 6, layers 5, 11, 17 are full and the rest windowed."""
    return tuple(None if (i + 1) % pattern == 0 else window for i in range(n_layers))
