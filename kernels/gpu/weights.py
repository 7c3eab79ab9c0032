"""A model's weights on the card: the runtime formats of `kernels.formats` as tensors, row by row as they are there.

A GEMV tile takes 16 or more groups of each of its rows, 256 bytes and up in a stretch, so that the layout of the
file's blocks is already the one the card likes; nothing is interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kernels.contract import ModelShape
from kernels.formats import Dense, Grouped4, Grouped8, runtime_format
from kernels.weights import LayerWeights, ModelWeights, WeightTensor


@dataclass(frozen=True)
class DeviceDense:
    """`values` [rows, cols] in the compute type."""

    values: torch.Tensor

    @property
    def rows(self) -> int:
        return self.values.shape[0]

    @property
    def cols(self) -> int:
        return self.values.shape[1]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


@dataclass(frozen=True)
class DeviceGrouped4:
    """`packed` uint8 [rows, cols/32, 16], `scales` and `minima` [rows, cols/32]: see `kernels.formats.Grouped4`."""

    packed: torch.Tensor
    scales: torch.Tensor
    minima: torch.Tensor

    @property
    def rows(self) -> int:
        return self.packed.shape[0]

    @property
    def cols(self) -> int:
        return self.packed.shape[1] * 32

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scales.nbytes + self.minima.nbytes


@dataclass(frozen=True)
class DeviceGrouped8:
    """`quants` int8 [rows, cols/32, 32], `scales` [rows, cols/32]."""

    quants: torch.Tensor
    scales: torch.Tensor

    @property
    def rows(self) -> int:
        return self.quants.shape[0]

    @property
    def cols(self) -> int:
        return self.quants.shape[1] * 32

    @property
    def nbytes(self) -> int:
        return self.quants.nbytes + self.scales.nbytes


DeviceMatrix = DeviceDense | DeviceGrouped4 | DeviceGrouped8


@dataclass(frozen=True)
class DeviceLayer:
    """One layer.  `qkv` and `gate_up` are stacked along the outputs: one part where the formats agree, else several."""

    attn_norm: torch.Tensor
    qkv: tuple[DeviceMatrix, ...]
    wo: DeviceMatrix
    ffn_norm: torch.Tensor
    gate_up: tuple[DeviceMatrix, ...]
    w_down: DeviceMatrix
    qkv_bias: torch.Tensor | None = None
    q_norm: torch.Tensor | None = None
    k_norm: torch.Tensor | None = None
    post_attn_norm: torch.Tensor | None = None
    post_ffn_norm: torch.Tensor | None = None


@dataclass(frozen=True)
class DeviceWeights:
    """All of it; `lm_head` is the embedding's own matrix when the two are tied."""

    embed: DeviceMatrix
    layers: tuple[DeviceLayer, ...]
    final_norm: torch.Tensor
    lm_head: DeviceMatrix

    @property
    def step_bytes(self) -> int:
        """Bytes of weights that one decode step must read (all but the embedding rows)."""
        matrices = [self.lm_head]
        for layer in self.layers:
            matrices += [*layer.qkv, layer.wo, *layer.gate_up, layer.w_down]
        return sum(matrix.nbytes for matrix in matrices)


def _upload(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.array(array, order="C")).to(device)


def upload_matrix(weight: WeightTensor, device: torch.device, compute: torch.dtype) -> DeviceMatrix:
    """A stored matrix in its runtime format; dense values are rounded to the compute type."""
    form = runtime_format(weight)
    if isinstance(form, Grouped4):
        return DeviceGrouped4(*(_upload(part, device) for part in (form.packed, form.scales, form.minima)))
    if isinstance(form, Grouped8):
        return DeviceGrouped8(_upload(form.quants, device), _upload(form.scales, device))
    assert isinstance(form, Dense)
    if form.bf16:
        return DeviceDense(_upload(form.values.view(np.int16), device).view(torch.bfloat16).to(compute))
    return DeviceDense(_upload(form.values, device).to(compute))


def stack(parts: Sequence[DeviceMatrix]) -> tuple[DeviceMatrix, ...]:
    """Matrices over the same inputs under one another; neighbours of equal format become one."""
    joined: list[DeviceMatrix] = [parts[0]]
    for part in parts[1:]:
        last = joined[-1]
        if isinstance(last, DeviceDense) and isinstance(part, DeviceDense):
            joined[-1] = DeviceDense(torch.cat((last.values, part.values)))
        elif isinstance(last, DeviceGrouped4) and isinstance(part, DeviceGrouped4) and _same(last, part):
            joined[-1] = DeviceGrouped4(
                torch.cat((last.packed, part.packed)),
                torch.cat((last.scales, part.scales)),
                torch.cat((last.minima, part.minima)),
            )
        elif isinstance(last, DeviceGrouped8) and isinstance(part, DeviceGrouped8) and _same(last, part):
            joined[-1] = DeviceGrouped8(torch.cat((last.quants, part.quants)), torch.cat((last.scales, part.scales)))
        else:
            joined.append(part)
    return tuple(joined)


def _same(a: DeviceGrouped4 | DeviceGrouped8, b: DeviceGrouped4 | DeviceGrouped8) -> bool:
    return a.scales.dtype == b.scales.dtype


def upload(shape: ModelShape, weights: ModelWeights, device: torch.device, compute: torch.dtype) -> DeviceWeights:
    """Bring a model to the device, one matrix at a time so that host memory holds one spare copy at most."""
    embed = upload_matrix(weights.embed, device, compute)
    head = embed if weights.lm_head is None else upload_matrix(weights.lm_head, device, compute)
    layers = tuple(_upload_layer(shape, layer, device, compute) for layer in weights.layers)
    return DeviceWeights(embed, layers, _vector(weights.final_norm, device), head)


def _vector(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return _upload(np.asarray(array, np.float32), device)


def _upload_layer(shape: ModelShape, layer: LayerWeights, device: torch.device, compute: torch.dtype) -> DeviceLayer:
    def matrix(weight: WeightTensor) -> DeviceMatrix:
        return upload_matrix(weight, device, compute)

    def vector(array: np.ndarray | None) -> torch.Tensor | None:
        return None if array is None else _vector(array, device)

    bias = None
    if shape.qkv_bias:
        assert layer.bq is not None and layer.bk is not None and layer.bv is not None
        bias = np.concatenate((layer.bq, layer.bk, layer.bv))
    return DeviceLayer(
        attn_norm=_vector(layer.attn_norm, device),
        qkv=stack([matrix(layer.wq), matrix(layer.wk), matrix(layer.wv)]),
        wo=matrix(layer.wo),
        ffn_norm=_vector(layer.ffn_norm, device),
        gate_up=stack([matrix(layer.w_gate), matrix(layer.w_up)]),
        w_down=matrix(layer.w_down),
        qkv_bias=vector(bias),
        q_norm=vector(layer.q_norm),
        k_norm=vector(layer.k_norm),
        post_attn_norm=vector(layer.post_attn_norm),
        post_ffn_norm=vector(layer.post_ffn_norm),
    )
