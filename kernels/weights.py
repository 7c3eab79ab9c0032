"""Containers for a model's weights in the precision their file holds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class WeightTensor:
    """One matrix [rows = outputs, cols = inputs], as stored.

    `data` is either a float array [rows, cols] (`gguf_type` None) or raw GGUF blocks, uint8 [rows, bytes per row], of
    the type named by `gguf_type` ("Q4_1", "Q8_0", ...).  Blocks run along the inputs, so that rows may be reordered
    without touching them.  `data` may be a view of a memory-mapped file: never written.
    """

    data: np.ndarray
    rows: int
    cols: int
    gguf_type: str | None = None

    @classmethod
    def dense(cls, array: np.ndarray) -> WeightTensor:
        """Wrap a float matrix [rows, cols]."""
        rows, cols = array.shape
        return cls(array, rows, cols)

    def dequantize(self) -> np.ndarray:
        """The values as float32 [rows, cols], a new array."""
        if self.gguf_type is None:
            return np.array(self.data, dtype=np.float32)
        from gguf import GGMLQuantizationType, dequantize

        flat = dequantize(self.data, GGMLQuantizationType[self.gguf_type])
        return np.ascontiguousarray(flat, dtype=np.float32).reshape(self.rows, self.cols)

    def take_rows(self, order: np.ndarray) -> WeightTensor:
        """The same matrix with its rows (outputs) in another order; copies."""
        return WeightTensor(np.ascontiguousarray(self.data[order]), len(order), self.cols, self.gguf_type)


@dataclass(frozen=True)
class LayerWeights:
    """One layer.  Vectors are float32; None where the architecture has no such part."""

    attn_norm: np.ndarray
    wq: WeightTensor
    wk: WeightTensor
    wv: WeightTensor
    wo: WeightTensor
    ffn_norm: np.ndarray
    w_gate: WeightTensor
    w_up: WeightTensor
    w_down: WeightTensor
    bq: np.ndarray | None = None
    bk: np.ndarray | None = None
    bv: np.ndarray | None = None
    q_norm: np.ndarray | None = None
    k_norm: np.ndarray | None = None
    post_attn_norm: np.ndarray | None = None
    post_ffn_norm: np.ndarray | None = None


@dataclass(frozen=True)
class ModelWeights:
    """All weights of a model; `lm_head` is None when the embedding is used on top as well."""

    embed: WeightTensor
    layers: tuple[LayerWeights, ...]
    final_norm: np.ndarray
    lm_head: WeightTensor | None = None
