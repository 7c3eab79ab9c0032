"""Linear layers: y[r] = W x[r], W dense, or in 4- or 8-bit groups that are unpacked in registers.

=========  =====================================  ============================================================
rows       kernel                                 bound by
=========  =====================================  ============================================================
1          `gemv_*`: products on the plain lanes  the read of W: N*K*(2 | 0.625 | 1.0625) bytes
2 to 16    `dot_*`, 16 columns on tensor cores    the same read; the weights are the left operand
more       dense: cuBLAS; groups: `dot_*`         2*R*N*K operations
=========  =====================================  ============================================================

With fp16 scales a 4-bit group is 16 + 2 + 2 bytes for 32 weights, an 8-bit one 32 + 2.  `gemv_*` multiplies the raw
integers and applies a group's scale and minimum to the group's sum, so that unpacking rounds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two
from kernels.gpu.unfold import unfold
from kernels.gpu.weights import DeviceDense, DeviceGrouped4, DeviceMatrix

SMALL_ROWS = 16
"""Up to here a call is a decode step or a short append and reading W is all that counts."""


@triton.jit
def gemv_dense(x, w, out, N, K: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One row.  Reads N*K*e bytes of W once, 2*N*K operations; x stays in the first-level cache."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = n.to(tl.int64) * K
    rows = n < N
    total = tl.zeros([BLOCK_N, BLOCK_K], tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        inside = k < K
        value = tl.load(x + k, mask=inside, other=0.0).to(tl.float32)
        tile = tl.load(w + start[:, None] + k[None, :], mask=rows[:, None] & inside[None, :], other=0.0)
        total += tile.to(tl.float32) * value[None, :]
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty), mask=rows)


@triton.jit
def gemv_grouped4(
    unfolded, words, scales, minima, out, N, K: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr
):
    """One row (see `kernels.gpu.unfold`), 4-bit.  Reads N*K*0.625 bytes of W.

    A mask, a conversion and a multiply-add a weight; a group's scale and minimum are applied to the group's sums, so
    that no weight is rounded.
    """
    WORDS: tl.constexpr = K // 8
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = n.to(tl.int64)[:, None]
    rows = (n < N)[:, None]
    total = tl.zeros([BLOCK_N, GROUPS], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        j = g0 * 4 + tl.arange(0, GROUPS * 4)[None, :]
        inside = j < WORDS
        word = tl.load(words + wide * WORDS + j, mask=rows & inside, other=0).to(tl.uint32, bitcast=True)
        sums = tl.zeros([BLOCK_N, GROUPS * 4], tl.float32)
        x = unfolded + j // 4 * 8 + j % 4
        for s in tl.static_range(8):
            value = tl.load(x + s // 2 * (K // 4) + s % 2 * 4, mask=inside, other=0.0)
            sums += (word & (15 << (4 * s))).to(tl.float32) * value
        g = g0 + tl.arange(0, GROUPS)[None, :]
        here = rows & (g < K // 32)
        scale = tl.load(scales + wide * (K // 32) + g, mask=here, other=0.0).to(tl.float32)
        least = tl.load(minima + wide * (K // 32) + g, mask=here, other=0.0).to(tl.float32)
        whole = tl.load(unfolded + K + g, mask=g < K // 32, other=0.0)
        total += scale * tl.sum(tl.reshape(sums, [BLOCK_N, GROUPS, 4]), 2) + least * whole
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty), mask=n < N)


@triton.jit
def gemv_grouped8(unfolded, words, scales, out, N, K: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr):
    """One row, 8-bit.  Reads N*K*1.0625 bytes of W; instructions as in `gemv_grouped4`.

    Bytes are taken as value + 128, without a sign, and 128 times the group's sum of inputs is taken off again.
    """
    WORDS: tl.constexpr = K // 4
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = n.to(tl.int64)[:, None]
    rows = (n < N)[:, None]
    total = tl.zeros([BLOCK_N, GROUPS], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        j = g0 * 8 + tl.arange(0, GROUPS * 8)[None, :]
        inside = j < WORDS
        signed = tl.load(words + wide * WORDS + j, mask=rows & inside, other=0)
        word = signed.to(tl.uint32, bitcast=True) ^ 0x80808080
        sums = tl.zeros([BLOCK_N, GROUPS * 8], tl.float32)
        for c in tl.static_range(4):
            value = tl.load(unfolded + c * WORDS + j, mask=inside, other=0.0)
            sums += (word & (255 << (8 * c))).to(tl.float32) * value
        sums *= tl.where(j // 4 % 2 == 1, 16.0, 1.0)
        g = g0 + tl.arange(0, GROUPS)[None, :]
        scale = tl.load(scales + wide * (K // 32) + g, mask=rows & (g < K // 32), other=0.0).to(tl.float32)
        whole = tl.load(unfolded + K + g, mask=g < K // 32, other=0.0)
        total += scale * (tl.sum(tl.reshape(sums, [BLOCK_N, GROUPS, 8]), 2) - 128.0 * whole)
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty), mask=n < N)


@triton.jit
def _store_columns(out, total, m, n, M, N, stride):
    """The accumulator is [outputs, rows]; the result lies row by row."""
    place = out + m.to(tl.int64)[None, :] * stride + n[:, None]
    tl.store(place, total.to(out.dtype.element_ty), mask=(n < N)[:, None] & (m < M)[None, :])


@triton.jit
def dot_dense(
    x, w, out, M, N, stride, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """M rows.  Reads N*K*e bytes of W once for each BLOCK_M rows, 2*M*N*K operations."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        inside = k < K
        here = (n < N)[:, None] & inside[None, :]
        tile = tl.load(w + n.to(tl.int64)[:, None] * K + k[None, :], mask=here, other=0.0)
        there = inside[:, None] & (m < M)[None, :]
        value = tl.load(x + m.to(tl.int64)[None, :] * K + k[:, None], mask=there, other=0.0)
        total = tl.dot(tile.to(x.dtype.element_ty), value, total, input_precision=PRECISION)
    _store_columns(out, total, m, n, M, N, stride)


@triton.jit
def dot_grouped4(
    x, packed, scales, minima, out, M, N, stride,
    K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """M rows, 4-bit: nibble * scale + minimum in registers, rounded to the compute type, then tensor cores.

    Low and high nibbles of a tile are two operands over two halves of each group's inputs, so no lane is shuffled.
    Reads N*K*0.625 bytes once for each BLOCK_M rows.
    """
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    byte = tl.arange(0, GROUPS * 16)
    element = x.dtype.element_ty
    total = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        inside = g0 * 16 + byte < K // 2
        here = (n < N)[:, None] & inside[None, :]
        pair = tl.load(packed + n.to(tl.int64)[:, None] * (K // 2) + g0 * 16 + byte[None, :], mask=here, other=0)
        group = g0 + tl.arange(0, GROUPS)
        there = (n < N)[:, None] & (group < K // 32)[None, :]
        place = n.to(tl.int64)[:, None] * (K // 32) + group[None, :]
        scale = tl.load(scales + place, mask=there, other=0.0).to(tl.float32)[:, :, None]
        least = tl.load(minima + place, mask=there, other=0.0).to(tl.float32)[:, :, None]
        grouped = tl.reshape(pair, [BLOCK_N, GROUPS, 16])
        low = tl.reshape((grouped & 15).to(tl.float32) * scale + least, [BLOCK_N, GROUPS * 16])
        high = tl.reshape((grouped >> 4).to(tl.float32) * scale + least, [BLOCK_N, GROUPS * 16])
        k = (g0 + byte // 16) * 32 + byte % 16
        mask = inside[:, None] & (m < M)[None, :]
        source = x + m.to(tl.int64)[None, :] * K + k[:, None]
        first = tl.load(source, mask=mask, other=0.0)
        second = tl.load(source + 16, mask=mask, other=0.0)
        total = tl.dot(low.to(element), first, total, input_precision=PRECISION)
        total = tl.dot(high.to(element), second, total, input_precision=PRECISION)
    _store_columns(out, total, m, n, M, N, stride)


@triton.jit
def dot_grouped8(
    x, quants, scales, out, M, N, stride,
    K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """M rows, 8-bit, as `dot_grouped4`.  Reads N*K*1.0625 bytes once for each BLOCK_M rows."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, GROUPS * 32)
    total = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        k = g0 * 32 + column
        inside = k < K
        here = (n < N)[:, None] & inside[None, :]
        tile = tl.load(quants + n.to(tl.int64)[:, None] * K + k[None, :], mask=here, other=0)
        group = g0 + tl.arange(0, GROUPS)
        there = (n < N)[:, None] & (group < K // 32)[None, :]
        place = n.to(tl.int64)[:, None] * (K // 32) + group[None, :]
        scale = tl.load(scales + place, mask=there, other=0.0).to(tl.float32)[:, :, None]
        weight = tl.reshape(tl.reshape(tile, [BLOCK_N, GROUPS, 32]).to(tl.float32) * scale, [BLOCK_N, GROUPS * 32])
        mask = inside[:, None] & (m < M)[None, :]
        value = tl.load(x + m.to(tl.int64)[None, :] * K + k[:, None], mask=mask, other=0.0)
        total = tl.dot(weight.to(x.dtype.element_ty), value, total, input_precision=PRECISION)
    _store_columns(out, total, m, n, M, N, stride)


def linear(
    x: torch.Tensor,
    matrix: DeviceMatrix,
    out: torch.Tensor,
    *,
    batch_invariant: bool = False,
    unfolded: torch.Tensor | None = None,
    tile: GemvTile | None = None,
) -> None:
    """out[r] = matrix @ x[r]: x [R, cols] in the compute type, contiguous; out [R, rows], rows contiguous.

    Sums are fp32; an `out` of fp32 receives them unrounded (the logits).  `batch_invariant` sends a single row through
    the kernel of 2 to 16 rows, so that a row's bits do not depend on how many rows are computed beside it (up to 16).
    `unfolded` is the single row as `kernels.gpu.unfold` lays it out, if its maker has done so.  `tile` is for tuning.
    """
    count = len(x)
    if count == 1 and not batch_invariant:
        _gemv(x, matrix, out, unfolded, tile or gemv_tile(matrix))
    elif count > SMALL_ROWS and isinstance(matrix, DeviceDense) and out.dtype == x.dtype:
        torch.mm(x, matrix.values.T, out=out)
    else:
        _dot(x, matrix, out)


def linear_parts(
    x: torch.Tensor,
    parts: Sequence[DeviceMatrix],
    out: torch.Tensor,
    *,
    batch_invariant: bool = False,
    unfolded: torch.Tensor | None = None,
) -> None:
    """As `linear` for matrices stacked along the outputs: out [R, sum of rows]."""
    start = 0
    for part in parts:
        linear(x, part, out[:, start : start + part.rows], batch_invariant=batch_invariant, unfolded=unfolded)
        start += part.rows


@dataclass(frozen=True)
class GemvTile:
    """What one program of `gemv_*` takes at a time: outputs, inputs (or groups of them), and its warps."""

    outputs: int
    inputs: int
    warps: int


def gemv_tile(matrix: DeviceMatrix) -> GemvTile:
    """A tile of 4 to 8 KB of W.

    Wide and flat, so that even a matrix of 4096 outputs makes enough programs to keep the memory busy: what counts is
    how many bytes are asked for at once, some 40 KB a processor.
    """
    if isinstance(matrix, DeviceDense):
        block_k = min(1024, power_of_two(matrix.cols, 16))
        return GemvTile(max(1, min(16, 4096 // block_k)), block_k, 4)
    # 16 bytes a thread must be one row's: 32 groups a warp at 4 bits, 16 at 8.  The fewest idle lanes win.
    per_warp = 32 if isinstance(matrix, DeviceGrouped4) else 16
    groups = matrix.cols // 32
    warps = min((4, 2, 1), key=lambda w: (-(-groups // (per_warp * w)) * w, -w))
    return GemvTile(4, per_warp * warps, warps)


def _gemv(
    x: torch.Tensor, matrix: DeviceMatrix, out: torch.Tensor, unfolded: torch.Tensor | None, tile: GemvTile
) -> None:
    rows, cols = matrix.rows, matrix.cols
    grid = (triton.cdiv(rows, tile.outputs),)
    constants = {"K": cols, "BLOCK_N": tile.outputs}
    if isinstance(matrix, DeviceDense):
        args = {"x": x, "w": matrix.values, "out": out, "N": rows}
        launch(gemv_dense, grid, args, {**constants, "BLOCK_K": tile.inputs}, num_warps=tile.warps)
        return
    args = {"unfolded": unfold(x) if unfolded is None else unfolded, "out": out, "N": rows, "scales": matrix.scales}
    constants["GROUPS"] = tile.inputs
    if isinstance(matrix, DeviceGrouped4):
        args |= {"words": matrix.packed.view(torch.int32), "minima": matrix.minima}
        launch(gemv_grouped4, grid, args, constants, num_warps=tile.warps)
    else:
        args["words"] = matrix.quants.view(torch.int32)
        launch(gemv_grouped8, grid, args, constants, num_warps=tile.warps)


def _dot(x: torch.Tensor, matrix: DeviceMatrix, out: torch.Tensor) -> None:
    count, rows, cols = len(x), matrix.rows, matrix.cols
    few = count <= SMALL_ROWS
    dense = isinstance(matrix, DeviceDense)
    block_m = 16 if few else 64
    # Few rows: narrow tiles, so that even 4096 outputs give every processor of a card a program.  Groups take 64
    # outputs, 16 for each of the 4 warps: with fewer, two warps would unpack the same weights.
    block_n = (32 if dense else 64) if few else 128
    warps, stages = (4, 4) if few else (8, 3)
    grid = (triton.cdiv(rows, block_n), triton.cdiv(count, block_m))
    args = {"x": x, "out": out, "M": count, "N": rows, "stride": out.stride(0)}
    precision = "ieee" if x.dtype == torch.float32 else "tf32"
    constants = {"K": cols, "BLOCK_M": block_m, "BLOCK_N": block_n, "PRECISION": precision}
    if isinstance(matrix, DeviceDense):
        constants["BLOCK_K"] = min(256 if few else 64, power_of_two(cols, 16))
        launch(dot_dense, grid, {**args, "w": matrix.values}, constants, num_warps=warps, num_stages=stages)
        return
    constants["GROUPS"] = min(4, power_of_two(cols // 32))
    args["scales"] = matrix.scales
    if isinstance(matrix, DeviceGrouped4):
        args |= {"packed": matrix.packed, "minima": matrix.minima}
        launch(dot_grouped4, grid, args, constants, num_warps=warps, num_stages=stages)
    else:
        args["quants"] = matrix.quants
        launch(dot_grouped8, grid, args, constants, num_warps=warps, num_stages=stages)
