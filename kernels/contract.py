"""The contract between the engine and a back end (CPU, GPU, plain reference).

The engine owns every decision about *which* page holds what; a back end owns the bytes of the pages and the
arithmetic.  A back end never allocates, frees or looks up a page, and the engine never looks inside one except
through `KVCache.export_page` / `import_page`.

Indices, by one worked case.  Page size 4, two sequences, one cache group::

    A holds 6 positions already and appends 3 tokens      -> positions 6 7 8,  context_len 9
    B holds 4 positions (a page shared with A) and appends 1 -> position  4,   context_len 5

    token_ids   [a6 a7 a8 b4]
    positions   [ 6  7  8  4]          slot of a row = its position
    seq_starts  [ 0        3  4]       rows of A are 0..2, of B 3..3
    context_lens[ 9  5]
    block_tables[0] [[7 2 5]           A: positions 0-3 in page 7, 4-7 in page 2, 8-11 in page 5
                     [7 9 -1]]         B: positions 0-3 in page 7 (shared), 4-7 in page 9
    logit_rows  [2 3]                  last row of each -> logits [2, vocab]

The forward writes K/V of row r at (block_table[position // 4], position % 4) and then attends.  In a layer with
window W a query at position p sees positions max(0, p - W + 1) .. p, so that blocks wholly before the window of the
first query row may be -1 in that group's table and must not be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from kernels.weights import ModelWeights

ABSENT = -1
"""Block-table entry of a page that is not there (behind a window, or past the context): never read."""


class KernelError(Exception):
    """A back end cannot do what was asked; the message says what to do instead."""


class Activation(Enum):
    """Gate activation of the feed-forward part: down(act(gate(x)) * up(x))."""

    SILU = "silu"
    GELU_TANH = "gelu_tanh"


@dataclass(frozen=True)
class RopeSpec:
    """Rotary position embedding in the half-split convention: pairs are (i, i + dim/2).

    Loaders reorder weights stored for adjacent pairs (GGUF `llama`), so back ends know one convention only.
    `factors` divides each pair's frequency (Llama 3 scaling); `linear` divides all of them (Gemma 3 long context).
    """

    base: float
    dim: int
    factors: tuple[float, ...] | None = None
    linear: float = 1.0

    def inverse_frequencies(self) -> np.ndarray:
        """Angle per position of each pair: float32 [dim / 2]."""
        exponents = np.arange(0, self.dim, 2, dtype=np.float64) / self.dim
        frequencies = 1.0 / (self.base**exponents) / self.linear
        if self.factors is not None:
            frequencies = frequencies / np.asarray(self.factors, dtype=np.float64)
        return frequencies.astype(np.float32)


@dataclass(frozen=True)
class LayerSpec:
    """What may differ from layer to layer: `window` None means full attention."""

    rope: RopeSpec
    window: int | None = None


@dataclass(frozen=True)
class ModelShape:
    """All a back end must know about the architecture.

    Norm weights are final (Gemma's "+1" is added by the loader).  One layer is:

        h = rms(x, attn_norm); q, k, v = h @ W{q,k,v}.T (+ bias); q, k = rms per head if qk_norm; rope(q, k)
        a = softmax(q k^T * attn_scale) v; a = a @ Wo.T; a = rms(a, post_attn_norm) if post_norms; x += a
        h = rms(x, ffn_norm); f = (act(h @ Wgate.T) * (h @ Wup.T)) @ Wdown.T; post norm likewise; x += f

    with x = embed[token] * embed_scale at the bottom and logits = rms(x, final_norm) @ (lm_head or embed).T on top.
    """

    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    norm_eps: float
    layers: tuple[LayerSpec, ...]
    activation: Activation = Activation.SILU
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    embed_scale: float = 1.0
    attn_scale: float = 0.0  # 0 means head_dim ** -0.5
    tied_embeddings: bool = False

    def __post_init__(self) -> None:
        if len(self.layers) != self.n_layers:
            raise KernelError(f"{self.n_layers} layers are declared but {len(self.layers)} are described")
        if self.n_heads % self.n_kv_heads:
            raise KernelError(f"{self.n_heads} heads cannot share {self.n_kv_heads} key/value heads evenly")
        if self.attn_scale == 0.0:
            object.__setattr__(self, "attn_scale", self.head_dim**-0.5)


@dataclass(frozen=True)
class CacheGroupSpec:
    """Layers that share one set of page ids and one block table (all full layers, or all of one window).

    `layers` are model layer numbers in ascending order.  The back end allocates exactly `n_pages` pages of
    `page_size` positions for each of them, once.
    """

    layers: tuple[int, ...]
    n_pages: int
    page_size: int
    window: int | None = None


@dataclass
class ForwardBatch:
    """One varlen step over several sequences; all arrays int32.  See the worked case at the top of the file.

    Rows of one sequence are consecutive positions ending at context_len - 1.  No two rows write the same slot.
    A sequence may share pages with others in the batch, but only positions it does not write.
    """

    token_ids: np.ndarray  # [n]
    positions: np.ndarray  # [n]
    seq_starts: np.ndarray  # [n_seq + 1]
    context_lens: np.ndarray  # [n_seq], positions filled after this forward
    block_tables: tuple[np.ndarray, ...]  # one [n_seq, max_blocks] per cache group, contiguous
    logit_rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))  # [m], ascending


@runtime_checkable
class KVCache(Protocol):
    """The bytes of all pages of all groups."""

    groups: tuple[CacheGroupSpec, ...]
    dtype: str
    """"float32", "float16" or "int8": what a page stores; part of the fingerprint of a saved session."""

    @property
    def nbytes(self) -> int:
        """Bytes held, allocated once at creation and constant afterwards."""
        ...

    def copy_positions(self, group: int, src_page: int, dst_page: int, n: int) -> None:
        """Copy the first `n` positions of a page over those of another, bit for bit, in every layer of the group."""
        ...

    def export_page(self, group: int, page: int, n: int) -> tuple[np.ndarray, ...]:
        """The first `n` positions as copies, exactly as stored.

        At least (keys, values), each [layers of the group, n, n_kv_heads, head_dim], keys after RoPE; formats with
        scales add further arrays.  `import_page` of the result restores the same bits.
        """
        ...

    def import_page(self, group: int, page: int, arrays: tuple[np.ndarray, ...]) -> None:
        """Write what `export_page` returned; positions beyond it keep what they hold."""
        ...


class Model(Protocol):
    """Weights made ready for one back end.  Not thread-safe: the engine's one worker calls it."""

    shape: ModelShape

    def make_cache(self, groups: tuple[CacheGroupSpec, ...], dtype: str = "float16") -> KVCache:
        """Allocate the pages; `KernelError` if the memory is not there or the dtype is not supported."""
        ...

    def forward(self, batch: ForwardBatch, cache: KVCache) -> np.ndarray:
        """Write K/V of all rows, return float32 logits [len(logit_rows), vocab].

        The array may be reused by the next call: the caller copies what it keeps.  A row's result depends only on
        its sequence's tokens, never on the other sequences of the batch or on how it was cut into steps; a back end
        that cannot promise this bit for bit says so in its docstring.
        """
        ...


class Backend(Protocol):
    """A module-level object that turns weights into a `Model`."""

    name: str

    def load(self, shape: ModelShape, weights: ModelWeights, *, threads: int = 1) -> Model:
        """Pack the weights.  The raw weights are not needed afterwards unless the back end keeps a view of them."""
        ...
