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

import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two
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
def gemv_grouped4(x, packed, scales, minima, out, N, K: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr):
    """One row, 4-bit.  Reads N*K*0.625 bytes; per weight about one mask or shift, one conversion, one multiply-add."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = n.to(tl.int64) * (K // 32)
    rows = n < N
    byte = tl.arange(0, 16)
    total = tl.zeros([BLOCK_N, GROUPS], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        g = g0 + tl.arange(0, GROUPS)
        inside = g < K // 32
        low = tl.load(x + g[:, None] * 32 + byte[None, :], mask=inside[:, None], other=0.0).to(tl.float32)
        high = tl.load(x + g[:, None] * 32 + 16 + byte[None, :], mask=inside[:, None], other=0.0).to(tl.float32)
        here = rows[:, None] & inside[None, :]
        place = start[:, None] + g[None, :]
        pair = tl.load(packed + place[:, :, None] * 16 + byte[None, None, :], mask=here[:, :, None], other=0)
        products = (pair & 15).to(tl.float32) * low[None, :, :] + (pair >> 4).to(tl.float32) * high[None, :, :]
        scale = tl.load(scales + place, mask=here, other=0.0).to(tl.float32)
        least = tl.load(minima + place, mask=here, other=0.0).to(tl.float32)
        total += scale * tl.sum(products, 2) + least * tl.sum(low + high, 1)[None, :]
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty), mask=rows)


@triton.jit
def gemv_grouped8(x, quants, scales, out, N, K: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr):
    """One row, 8-bit.  Reads N*K*1.0625 bytes; a conversion and a multiply-add a weight."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = n.to(tl.int64) * (K // 32)
    rows = n < N
    byte = tl.arange(0, 32)
    total = tl.zeros([BLOCK_N, GROUPS], tl.float32)
    for g0 in range(0, K // 32, GROUPS):
        g = g0 + tl.arange(0, GROUPS)
        inside = g < K // 32
        value = tl.load(x + g[:, None] * 32 + byte[None, :], mask=inside[:, None], other=0.0).to(tl.float32)
        here = rows[:, None] & inside[None, :]
        place = start[:, None] + g[None, :]
        tile = tl.load(quants + place[:, :, None] * 32 + byte[None, None, :], mask=here[:, :, None], other=0)
        scale = tl.load(scales + place, mask=here, other=0.0).to(tl.float32)
        total += scale * tl.sum(tile.to(tl.float32) * value[None, :, :], 2)
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty), mask=rows)


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


def linear(x: torch.Tensor, matrix: DeviceMatrix, out: torch.Tensor, *, batch_invariant: bool = False) -> None:
    """out[r] = matrix @ x[r]: x [R, cols] in the compute type, contiguous; out [R, rows], rows contiguous.

    Sums are fp32; an `out` of fp32 receives them unrounded (the logits).

    `batch_invariant` sends a single row through the kernel of 2 to 16 rows, so that a row's bits do not depend on
    how many rows are computed beside it (up to 16).
    """
    count = len(x)
    if count == 1 and not batch_invariant:
        _gemv(x, matrix, out)
    elif count > SMALL_ROWS and isinstance(matrix, DeviceDense) and out.dtype == x.dtype:
        torch.mm(x, matrix.values.T, out=out)
    else:
        _dot(x, matrix, out)


def linear_parts(
    x: torch.Tensor, parts: Sequence[DeviceMatrix], out: torch.Tensor, *, batch_invariant: bool = False
) -> None:
    """As `linear` for matrices stacked along the outputs: out [R, sum of rows]."""
    start = 0
    for part in parts:
        linear(x, part, out[:, start : start + part.rows], batch_invariant=batch_invariant)
        start += part.rows


def _gemv(x: torch.Tensor, matrix: DeviceMatrix, out: torch.Tensor) -> None:
    rows, cols = matrix.rows, matrix.cols
    if isinstance(matrix, DeviceDense):
        # 8 KB a tile and program: with 8 programs a processor about 64 KB are in flight.
        block_k = min(1024, power_of_two(cols, 16))
        block_n = max(1, min(16, 4096 // block_k))
        launch(
            gemv_dense,
            (triton.cdiv(rows, block_n),),
            {"x": x, "w": matrix.values, "out": out, "N": rows},
            {"K": cols, "BLOCK_N": block_n, "BLOCK_K": block_k},
        )
        return
    groups = min(32, power_of_two(cols // 32))
    block_n = max(1, 256 // groups)
    constants = {"K": cols, "BLOCK_N": block_n, "GROUPS": groups}
    grid = (triton.cdiv(rows, block_n),)
    if isinstance(matrix, DeviceGrouped4):
        args = {"packed": matrix.packed, "scales": matrix.scales, "minima": matrix.minima}
        launch(gemv_grouped4, grid, {"x": x, **args, "out": out, "N": rows}, constants)
    else:
        args = {"quants": matrix.quants, "scales": matrix.scales}
        launch(gemv_grouped8, grid, {"x": x, **args, "out": out, "N": rows}, constants)


def _dot(x: torch.Tensor, matrix: DeviceMatrix, out: torch.Tensor) -> None:
    count, rows, cols = len(x), matrix.rows, matrix.cols
    block_m = 16 if count <= SMALL_ROWS else 64
    # Few rows: narrow tiles, so that even 4096 outputs give every processor of a card a program, and deep pipelines.
    block_n = 32 if count <= SMALL_ROWS else 128
    stages = 4 if count <= SMALL_ROWS else 3
    grid = (triton.cdiv(rows, block_n), triton.cdiv(count, block_m))
    common = {"out": out, "M": count, "N": rows, "stride": out.stride(0)}
    constants = {
        "K": cols, "BLOCK_M": block_m, "BLOCK_N": block_n, "PRECISION": "ieee" if x.dtype == torch.float32 else "tf32"
    }  # fmt: skip
    if isinstance(matrix, DeviceDense):
        block_k = min(256 if count <= SMALL_ROWS else 64, power_of_two(cols, 16))
        args = {"x": x, "w": matrix.values, **common}
        launch(dot_dense, grid, args, {**constants, "BLOCK_K": block_k}, num_warps=4, num_stages=stages)
        return
    groups = min(8 if count <= SMALL_ROWS else 4, power_of_two(cols // 32))
    constants["GROUPS"] = groups
    if isinstance(matrix, DeviceGrouped4):
        parts = {"packed": matrix.packed, "scales": matrix.scales, "minima": matrix.minima}
        launch(dot_grouped4, grid, {"x": x, **parts, **common}, constants, num_warps=4, num_stages=stages)
    else:
        parts = {"quants": matrix.quants, "scales": matrix.scales}
        launch(dot_grouped8, grid, {"x": x, **parts, **common}, constants, num_warps=4, num_stages=stages)
