"""Runtime weight formats: what a file's block types become before a back end lays them out.

=======================================  ==========================================================
GGUF type                                runtime format
=======================================  ==========================================================
Q4_0, Q4_1, Q4_K                         `Grouped4`, exactly: value = scale * nibble + minimum
Q8_0, Q5_0                               `Grouped8`, exactly: value = scale * int8
Q5_1, Q5_K, Q6_K, Q3_K, Q2_K, IQ...      `Grouped8`, rounded to 1/254 of the largest value of each 32
F32, F16, BF16                           `Dense`, as they are
=======================================  ==========================================================

Scales are fp16 when that loses nothing (all types whose blocks hold an fp16 scale), otherwise fp32: a Q4_K scale is
the product of an fp16 and a 6-bit number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.weights import WeightTensor

GROUP = 32
"""Inputs that share a scale."""


@dataclass(frozen=True)
class Grouped4:
    """4 bits a weight.

    `packed` uint8 [rows, cols/32, 16]: byte i of a group holds input i in its low and input 16 + i in its high half.
    `scales`, `minima` [rows, cols/32], fp16 or fp32.
    """

    packed: np.ndarray
    scales: np.ndarray
    minima: np.ndarray

    def dequantize(self) -> np.ndarray:
        """float32 [rows, cols]."""
        nibbles = np.concatenate([self.packed & 15, self.packed >> 4], axis=2).astype(np.float32)
        values = nibbles * self.scales.astype(np.float32)[..., None] + self.minima.astype(np.float32)[..., None]
        return values.reshape(len(values), -1)


@dataclass(frozen=True)
class Grouped8:
    """8 bits a weight: `quants` int8 [rows, cols/32, 32], `scales` [rows, cols/32] fp16 or fp32."""

    quants: np.ndarray
    scales: np.ndarray

    def dequantize(self) -> np.ndarray:
        """float32 [rows, cols]."""
        values = self.quants.astype(np.float32) * self.scales.astype(np.float32)[..., None]
        return values.reshape(len(values), -1)


@dataclass(frozen=True)
class Dense:
    """Plain values [rows, cols]: float32, float16, or uint16 holding bf16 bits when `bf16`."""

    values: np.ndarray
    bf16: bool = False

    def dequantize(self) -> np.ndarray:
        """float32 [rows, cols]."""
        if self.bf16:
            return (self.values.astype(np.uint32) << 16).view(np.float32)
        return self.values.astype(np.float32)


def runtime_format(tensor: WeightTensor) -> Grouped4 | Grouped8 | Dense:
    """The runtime form of a stored matrix; arrays may be views of the stored bytes."""
    kind = tensor.gguf_type
    if kind is None:
        return _dense(tensor.data)
    raw = tensor.data.view(np.uint8).reshape(tensor.rows, -1)
    if kind == "F32":
        return Dense(raw.view(np.float32))
    if kind == "F16":
        return Dense(raw.view(np.float16))
    if kind == "BF16":
        return Dense(raw.view(np.uint16), bf16=True)
    if kind in _EXACT:
        return _EXACT[kind](raw)
    return quantize8(tensor.dequantize())


def quantize8(values: np.ndarray) -> Grouped8:
    """Round float32 [rows, cols] to `Grouped8` with fp32 scales; cols must be a multiple of 32."""
    groups = np.ascontiguousarray(values, np.float32).reshape(len(values), -1, GROUP)
    scales = np.abs(groups).max(axis=2) / np.float32(127)
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
    return Grouped8(np.rint(groups * inverse[..., None]).astype(np.int8), scales)


def narrow(*scales: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays as fp16 if all of them survive it unchanged, else as fp32."""
    if all(s.dtype == np.float16 for s in scales):
        return scales
    wide = tuple(s.astype(np.float32) for s in scales)
    with np.errstate(over="ignore"):
        halves = tuple(s.astype(np.float16) for s in wide)
    exact = all(np.array_equal(h.astype(np.float32), w) for h, w in zip(halves, wide, strict=True))
    return halves if exact else wide


def _dense(array: np.ndarray) -> Dense:
    if array.dtype == np.float16:
        return Dense(array)
    if array.dtype == np.uint16:
        return Dense(array, bf16=True)
    return Dense(np.asarray(array, np.float32))


def _q4_0(raw: np.ndarray) -> Grouped4:
    blocks = raw.reshape(len(raw), -1, 18)
    scales = blocks[..., :2].copy().view(np.float16)[..., 0]
    # -8 * scale is exact in fp16 unless it overflows, which `narrow` notices.
    minima = scales.astype(np.float32) * np.float32(-8)
    return Grouped4(blocks[..., 2:], *narrow(scales.astype(np.float32), minima))


def _q4_1(raw: np.ndarray) -> Grouped4:
    blocks = raw.reshape(len(raw), -1, 20)
    both = blocks[..., :4].copy().view(np.float16)
    return Grouped4(blocks[..., 4:], both[..., 0], both[..., 1])


def _q4_k(raw: np.ndarray) -> Grouped4:
    """Super-blocks of 256: fp16 scale and minimum, twelve bytes of 6-bit factors, 4 x 32 bytes of nibbles."""
    rows = len(raw)
    blocks = raw.reshape(rows, -1, 144)
    both = blocks[..., :4].copy().view(np.float16).astype(np.float32)
    six = blocks[..., 4:16]
    low, mid, high = six[..., 0:4], six[..., 4:8], six[..., 8:12]
    factors = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=-1)
    offsets = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=-1)
    scales = (both[..., 0:1] * factors.astype(np.float32)).reshape(rows, -1)
    minima = -(both[..., 1:2] * offsets.astype(np.float32)).reshape(rows, -1)
    # A byte holds the same input of two neighbouring groups; ours holds two inputs of one group.
    bytes_ = blocks[..., 16:].reshape(rows, -1, 4, 2, 16)
    first, second = bytes_[..., 0, :], bytes_[..., 1, :]
    even = (first & 15) | ((second & 15) << 4)
    odd = (first >> 4) | (second & 0xF0)
    packed = np.stack([even, odd], axis=3).reshape(rows, -1, 16)
    return Grouped4(packed, *narrow(scales, minima))


def _q8_0(raw: np.ndarray) -> Grouped8:
    blocks = raw.reshape(len(raw), -1, 34)
    return Grouped8(blocks[..., 2:].view(np.int8), blocks[..., :2].copy().view(np.float16)[..., 0])


def _q5_0(raw: np.ndarray) -> Grouped8:
    """fp16 scale, 32 fifth bits, 16 bytes of nibbles; value = scale * (q - 16)."""
    blocks = raw.reshape(len(raw), -1, 22)
    scales = blocks[..., :2].copy().view(np.float16)[..., 0]
    fifth = blocks[..., 2:6].copy().view(np.uint32)
    bits = ((fifth >> np.arange(32, dtype=np.uint32)) & 1).astype(np.uint8) << 4
    nibbles = np.concatenate([blocks[..., 6:] & 15, blocks[..., 6:] >> 4], axis=-1)
    return Grouped8((nibbles | bits).astype(np.int8) - np.int8(16), scales)


_EXACT: dict[str, Callable[[np.ndarray], Grouped4 | Grouped8]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q4_K": _q4_k,
    "Q8_0": _q8_0,
    "Q5_0": _q5_0,
}
