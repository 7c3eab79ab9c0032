"""Kernels that touch each activation once: embedding rows, norms with the residual, RoPE with the page write, gates.

Byte counts in the docstrings are what must move; `R` rows, `H` hidden size, `e` bytes of the compute type (2 for
bf16).  All of these are far below the time of reading one layer's weights at decode; they are fused to save launches.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two
from kernels.gpu.unfold import store_unfolded
from kernels.gpu.weights import DeviceDense, DeviceGrouped4, DeviceGrouped8, DeviceMatrix

NO_QUANT = tl.constexpr(0)
INT8 = tl.constexpr(1)


@triton.jit
def _token(tokens, last_ids, row):
    """A token id; -1 - j stands for the id that row j sampled in the step before, still on the card."""
    token = tl.load(tokens + row)
    if token < 0:
        token = tl.load(last_ids - 1 - token)
    return token.to(tl.int64)


@triton.jit
def embed_dense(tokens, last_ids, table, out, K: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    """out[r] = table[token[r]] * SCALE, fp32.  Moves R*H*(e + 4) bytes."""
    row = tl.program_id(0)
    token = _token(tokens, last_ids, row)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(table + token * K + k, mask=k < K).to(tl.float32)
    tl.store(out + row.to(tl.int64) * K + k, value * SCALE, mask=k < K)


@triton.jit
def embed_grouped4(
    tokens, last_ids, packed, scales, minima, out, K: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr
):
    """As `embed_dense` from 4-bit groups; BLOCK bytes a program.  Moves R*H*(0.625 + 4) bytes."""
    row = tl.program_id(0)
    token = _token(tokens, last_ids, row)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    here = byte < K // 2
    group = byte // 16
    pair = tl.load(packed + token * (K // 2) + byte, mask=here)
    scale = tl.load(scales + token * (K // 32) + group, mask=here).to(tl.float32)
    least = tl.load(minima + token * (K // 32) + group, mask=here).to(tl.float32)
    target = out + row.to(tl.int64) * K + group * 32 + byte % 16
    tl.store(target, ((pair & 15).to(tl.float32) * scale + least) * SCALE, mask=here)
    tl.store(target + 16, ((pair >> 4).to(tl.float32) * scale + least) * SCALE, mask=here)


@triton.jit
def embed_grouped8(tokens, last_ids, quants, scales, out, K: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    """As `embed_dense` from 8-bit groups.  Moves R*H*(1.0625 + 4) bytes."""
    row = tl.program_id(0)
    token = _token(tokens, last_ids, row)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(quants + token * K + k, mask=k < K).to(tl.float32)
    scale = tl.load(scales + token * (K // 32) + k // 32, mask=k < K).to(tl.float32)
    tl.store(out + row.to(tl.int64) * K + k, value * scale * SCALE, mask=k < K)


def embed(tokens: torch.Tensor, last_ids: torch.Tensor, table: DeviceMatrix, scale: float, out: torch.Tensor) -> None:
    """Rows of the embedding into `out` fp32 [R, hidden]; tokens int32 [R], negative ones as in `_token`."""
    block = min(1024, power_of_two(table.cols))
    grid = (len(tokens), triton.cdiv(table.cols, block))
    constants = {"K": table.cols, "SCALE": float(scale), "BLOCK": block}
    ids: dict[str, Any] = {"tokens": tokens, "last_ids": last_ids}
    if isinstance(table, DeviceDense):
        launch(embed_dense, grid, {**ids, "table": table.values, "out": out}, constants)
    elif isinstance(table, DeviceGrouped8):
        launch(embed_grouped8, grid, {**ids, "quants": table.quants, "scales": table.scales, "out": out}, constants)
    else:
        assert isinstance(table, DeviceGrouped4)
        args = {**ids, "packed": table.packed, "scales": table.scales, "minima": table.minima, "out": out}
        half = min(512, power_of_two(table.cols // 2))
        launch(embed_grouped4, (len(tokens), triton.cdiv(table.cols // 2, half)), args, {**constants, "BLOCK": half})


@triton.jit
def add_norm_kernel(
    x, added, post_weight, weight, rows, out, unfolded,
    K: tl.constexpr, EPS: tl.constexpr, HAS_ADDED: tl.constexpr, HAS_POST: tl.constexpr, HAS_ROWS: tl.constexpr,
    UNFOLD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """x += [rms(added) * post_weight | added]; out = rms(x) * weight.  One program a row.

    Moves R*H*(4 + 4 + e + e) bytes with a residual (x read and written, added read, out written), about 10 operations
    a value.  With HAS_ROWS only the listed rows are normed (the ones whose logits are wanted) and x is left alone.
    """
    place = tl.program_id(0).to(tl.int64)
    row = place
    if HAS_ROWS:
        row = tl.load(rows + place).to(tl.int64)
    k = tl.arange(0, BLOCK)
    inside = k < K
    value = tl.load(x + row * K + k, mask=inside, other=0.0)
    if HAS_ADDED:
        more = tl.load(added + row * K + k, mask=inside, other=0.0).to(tl.float32)
        if HAS_POST:
            spread = tl.rsqrt(tl.sum(more * more, 0) / K + EPS)
            more = more * spread * tl.load(post_weight + k, mask=inside, other=0.0)
        value += more
        if not HAS_ROWS:
            tl.store(x + row * K + k, value, mask=inside)
    spread = tl.rsqrt(tl.sum(value * value, 0) / K + EPS)
    normed = value * spread * tl.load(weight + k, mask=inside, other=0.0)
    tl.store(out + place * K + k, normed.to(out.dtype.element_ty), mask=inside)
    if UNFOLD:
        store_unfolded(unfolded, k, normed, inside, K, BLOCK)


def add_norm(
    x: torch.Tensor,
    added: torch.Tensor | None,
    post_weight: torch.Tensor | None,
    weight: torch.Tensor,
    eps: float,
    out: torch.Tensor,
    rows: torch.Tensor | None = None,
    unfolded: torch.Tensor | None = None,
) -> None:
    """Residual and RMS norm in one pass: x fp32 [R, H] in place, `added` [R, H], `out` [R or len(rows), H].

    `unfolded` receives the result once more, as `kernels.gpu.unfold` lays it out, when `out` is a single row.
    """
    width = x.shape[1]
    launch(
        add_norm_kernel,
        (len(out),),
        {"x": x, "added": added, "post_weight": post_weight, "weight": weight, "rows": rows, "out": out,
         "unfolded": unfolded},
        {
            "K": width, "EPS": float(eps), "HAS_ADDED": added is not None, "HAS_POST": post_weight is not None,
            "HAS_ROWS": rows is not None, "UNFOLD": unfolded is not None, "BLOCK": power_of_two(width, 32),
        },
        num_warps=8 if width > 2048 else 4,
    )  # fmt: skip


@triton.jit
def rope_write_kernel(
    qkv, bias, q_norm, k_norm, cos_sin, positions, row_seq, table, table_stride, q_out, k_pages, v_pages, k_scales,
    v_scales,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, HALF: tl.constexpr, PAGE: tl.constexpr,
    EPS: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_NORM: tl.constexpr, QUANT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Bias, norm per head, rotation, and the write of K and V into their page.  One program a row and head.

    Moves R*(heads + 2*kv_heads)*D*(4 + e) bytes.  Rows with position -1 are padding and write nothing.
    """
    row = tl.program_id(0)
    head = tl.program_id(1)
    position = tl.load(positions + row)
    if position >= 0:
        d = tl.arange(0, BLOCK)
        inside = d < D
        source = qkv + (row.to(tl.int64) * (HEADS + 2 * KV_HEADS) + head) * D
        # Halves are paired: d turns with d + HALF, and what lies beyond 2 * HALF does not turn.
        partner = tl.where(d < HALF, d + HALF, tl.where(d < 2 * HALF, d - HALF, d))
        value = tl.load(source + d, mask=inside, other=0.0).to(tl.float32)
        other = tl.load(source + partner, mask=inside, other=0.0).to(tl.float32)
        if HAS_BIAS:
            value += tl.load(bias + head * D + d, mask=inside, other=0.0)
            other += tl.load(bias + head * D + partner, mask=inside, other=0.0)
        if head < HEADS + KV_HEADS:
            if HAS_NORM:
                weight = q_norm
                if head >= HEADS:
                    weight = k_norm
                spread = tl.rsqrt(tl.sum(value * value, 0) / D + EPS)
                value = value * spread * tl.load(weight + d, mask=inside, other=0.0)
                other = other * spread * tl.load(weight + partner, mask=inside, other=0.0)
            turning = d < 2 * HALF
            angle = cos_sin + row * (2 * HALF) + d % HALF
            cosine = tl.load(angle, mask=turning, other=1.0)
            sine = tl.load(angle + HALF, mask=turning, other=0.0)
            value = value * cosine + tl.where(d < HALF, -other, other) * sine
        if head < HEADS:
            target = q_out + (row.to(tl.int64) * HEADS + head) * D
            tl.store(target + d, value.to(q_out.dtype.element_ty), mask=inside)
        else:
            seq = tl.load(row_seq + row)
            page = tl.load(table + seq * table_stride + position // PAGE).to(tl.int64)
            kind = (head - HEADS) // KV_HEADS
            slot = (page * KV_HEADS + (head - HEADS) % KV_HEADS) * PAGE + position % PAGE
            if QUANT != NO_QUANT:
                limit: tl.constexpr = 127.0 if QUANT == INT8 else 448.0
                largest = tl.max(tl.where(inside, tl.abs(value), 0.0), 0)
                scale = largest / limit
                value = value * tl.where(largest > 0.0, limit / largest, 0.0)
                if kind == 0:
                    tl.store(k_scales + slot, scale)
                else:
                    tl.store(v_scales + slot, scale)
                if QUANT == INT8:
                    value = tl.floor(value + 0.5)
            if kind == 0:
                tl.store(k_pages + slot * D + d, value.to(k_pages.dtype.element_ty), mask=inside)
            else:
                tl.store(v_pages + slot * D + d, value.to(v_pages.dtype.element_ty), mask=inside)


@triton.jit
def gate_kernel(pair, out, unfolded, N: tl.constexpr, GELU: tl.constexpr, UNFOLD: tl.constexpr, BLOCK: tl.constexpr):
    """out = act(gate) * up over rows [gate | up] of 2 N.  Moves R*N*(4 + 4 + e) bytes (e for 4 after cuBLAS)."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    gate = tl.load(pair + row * 2 * N + n, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(pair + row * 2 * N + N + n, mask=inside, other=0.0).to(tl.float32)
    if GELU:
        inner = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    else:
        inner = 0.5 * gate
    # Both are gate * sigmoid(2 * inner): tanh(x) = 2 * sigmoid(2x) - 1.
    value = gate / (1.0 + tl.exp(-2.0 * inner)) * up
    tl.store(out + row * N + n, value.to(out.dtype.element_ty), mask=inside)
    if UNFOLD:
        store_unfolded(unfolded, n, value, inside, N, BLOCK)


def gate(pair: torch.Tensor, gelu: bool, out: torch.Tensor, unfolded: torch.Tensor | None = None) -> None:
    """SwiGLU or GeGLU (tanh form): pair [R, 2 N] -> out [R, N], and unfolded when R is 1."""
    n = out.shape[1]
    block = min(1024, power_of_two(n, 32))
    launch(
        gate_kernel,
        (len(out), triton.cdiv(n, block)),
        {"pair": pair, "out": out, "unfolded": unfolded},
        {"N": n, "GELU": gelu, "UNFOLD": unfolded is not None, "BLOCK": block},
    )
