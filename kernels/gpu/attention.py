"""Paged attention: one kernel for decode, short appends, shared prefixes and prefill, and one that merges splits.

A *work item* is a set of query rows, one block table and a range of positions.  The key/value heads are the second
dimension of the grid; the query heads that share one lie beside each other in the tile:

    tile row  m = row_in_item * SHARE_P + head_in_group       SHARE_P: heads per kv head, up to a power of two

Positions are cut at multiples of SPLIT, counted from position 0 of the sequence.  In PARTIAL mode an item is (part
of) one split and leaves (largest score, sum, weighted values) for each of its rows; `combine` merges a row's splits
in order.  Where the cuts are depends on the position only, and tiles before a row's window or after its position
change nothing, bit for bit.  So a row's result does not depend on the batch, nor on whether a split was read for one
row or, because several sequences hold the same pages there, for all of them at once: that is the whole of
shared-prefix attention.

Worked case: page 4, SPLIT 8, forks A and B at position 17 share pages [7 2 5 4], their own last pages are 9 and 6:

    split 0: positions 0-7,   pages 7 2   one item, rows {A, B}
    split 1: positions 8-15,  pages 5 4   one item, rows {A, B}
    split 2: positions 16-17              two items, pages 9 and 6

Bytes for the keys and values: positions * kv_heads * D * 2 * (bytes of a stored value), once for each item; partial
results add rows * heads * splits * (D + 2) * 4, written and read once: D=128, 4 heads a kv head, bf16 pages, SPLIT
256 makes that 3 % of the former at one row.  Operations: 4 * rows * heads * positions * D.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two
from kernels.gpu.rowops import NO_QUANT
from kernels.gpu.unfold import store_unfolded

MERGE = 16
"""Splits that `combine` takes at a time."""


@triton.jit
def attend_kernel(
    q, k_pages, v_pages, k_scales, v_scales, table, table_stride, positions, items, item_rows, part_values, part_sums,
    out, max_splits,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SHARE_P: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGE: tl.constexpr, WINDOW: tl.constexpr, SPLIT: tl.constexpr, SCALE: tl.constexpr, QUANT: tl.constexpr,
    PARTIAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One item and kv head; see the module.  `items` int32 [n, 3]: table row (-1 = nothing), first position, end."""
    ROWS: tl.constexpr = BLOCK_M // SHARE_P
    SHARE: tl.constexpr = HEADS // KV_HEADS
    item = tl.program_id(0)
    kv_head = tl.program_id(1)
    seq = tl.load(items + item * 3)
    if seq >= 0:
        begin = tl.load(items + item * 3 + 1)
        end = tl.load(items + item * 3 + 2)
        m = tl.arange(0, BLOCK_M)
        d = tl.arange(0, BLOCK_D)
        row = tl.load(item_rows + item * ROWS + m // SHARE_P)
        live = (row >= 0) & (m % SHARE_P < SHARE)
        position = tl.load(positions + row, mask=live, other=-1)
        low = tl.zeros([BLOCK_M], tl.int32)
        if WINDOW > 0:
            low = tl.maximum(position - WINDOW + 1, 0)
        head = row.to(tl.int64) * HEADS + kv_head * SHARE + m % SHARE_P
        whole = live[:, None] & (d < D)[None, :]
        query = tl.load(q + head[:, None] * D + d[None, :], mask=whole, other=0.0)
        largest = tl.full([BLOCK_M], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        values = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        for n0 in range(begin, end, BLOCK_N):
            key = n0 + tl.arange(0, BLOCK_N)
            page = tl.load(table + seq * table_stride + key // PAGE, mask=key < end, other=-1)
            present = page >= 0
            slot = (page.to(tl.int64) * KV_HEADS + kv_head) * PAGE + key % PAGE
            inside = present[None, :] & (d < D)[:, None]
            keys = tl.load(k_pages + slot[None, :] * D + d[:, None], mask=inside, other=0.0).to(query.dtype)
            score = tl.dot(query, keys, input_precision=PRECISION) * (SCALE * 1.4426950408889634)
            if QUANT != NO_QUANT:
                score *= tl.load(k_scales + slot, mask=present, other=0.0)[None, :]
            seen = present[None, :] & (key[None, :] <= position[:, None]) & (key[None, :] >= low[:, None])
            score = tl.where(seen, score, float("-inf"))
            peak = tl.maximum(largest, tl.max(score, 1))
            # A row that has seen nothing yet has no peak: any finite number keeps -inf - peak from being NaN.
            finite = tl.where(peak == float("-inf"), 0.0, peak)
            weight = tl.exp2(score - finite[:, None])
            fade = tl.exp2(largest - finite)
            total = total * fade + tl.sum(weight, 1)
            if QUANT != NO_QUANT:
                weight *= tl.load(v_scales + slot, mask=present, other=0.0)[None, :]
            inside_v = present[:, None] & (d < D)[None, :]
            value = tl.load(v_pages + slot[:, None] * D + d[None, :], mask=inside_v, other=0.0).to(query.dtype)
            values = tl.dot(weight.to(query.dtype), value, values * fade[:, None], input_precision=PRECISION)
            largest = peak
        if PARTIAL:
            place = head * max_splits + begin // SPLIT - low // SPLIT
            tl.store(part_values + place[:, None] * D + d[None, :], values, mask=whole)
            tl.store(part_sums + place * 2, largest, mask=live)
            tl.store(part_sums + place * 2 + 1, total, mask=live)
        else:
            result = values / tl.where(total > 0.0, total, 1.0)[:, None]
            tl.store(out + head[:, None] * D + d[None, :], result.to(out.dtype.element_ty), mask=whole)


@triton.jit
def combine_kernel(
    part_values, part_sums, positions, rows, out, unfolded, max_splits,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, WINDOW: tl.constexpr, SPLIT: tl.constexpr,
    CHUNK: tl.constexpr, UNFOLD: tl.constexpr,
):  # fmt: skip
    """Merge a row's splits by their log-sum-exp: one program a listed row (-1 = padding) and head.

    Reads splits * (D + 2) * 4 bytes a row and head, 2 operations a value.
    """
    row = tl.load(rows + tl.program_id(0))
    if row >= 0:
        head = row.to(tl.int64) * HEADS + tl.program_id(1)
        position = tl.load(positions + row)
        first = 0
        if WINDOW > 0:
            first = tl.maximum(position - WINDOW + 1, 0) // SPLIT
        count = position // SPLIT - first + 1
        d = tl.arange(0, BLOCK_D)
        largest = float("-inf")
        total = 0.0
        values = tl.zeros([BLOCK_D], tl.float32)
        for s0 in range(0, count, CHUNK):
            s = s0 + tl.arange(0, CHUNK)
            here = s < count
            place = head * max_splits + s
            peaks = tl.load(part_sums + place * 2, mask=here, other=float("-inf"))
            sums = tl.load(part_sums + place * 2 + 1, mask=here, other=0.0)
            peak = tl.maximum(largest, tl.max(peaks, 0))
            finite = tl.where(peak == float("-inf"), 0.0, peak)
            share = tl.exp2(peaks - finite)
            fade = tl.exp2(largest - finite)
            total = total * fade + tl.sum(sums * share, 0)
            mask = here[:, None] & (d < D)[None, :]
            part = tl.load(part_values + place[:, None] * D + d[None, :], mask=mask, other=0.0)
            values = values * fade + tl.sum(part * share[:, None], 0)
            largest = peak
        result = values / total
        tl.store(out + head * D + d, result.to(out.dtype.element_ty), mask=d < D)
        if UNFOLD:
            store_unfolded(unfolded, tl.program_id(1) * D + d, result, d < D, HEADS * D, BLOCK_D)


@dataclass(frozen=True)
class AttentionShape:
    """What is fixed for one layer of a model over one cache."""

    heads: int
    kv_heads: int
    head_dim: int
    page_size: int
    window: int | None
    split: int
    scale: float
    quant: int
    """0, 1 (int8) or 2 (fp8)."""

    @property
    def padded_share(self) -> int:
        """Tile rows that one query row takes."""
        return power_of_two(self.heads // self.kv_heads)


@dataclass(frozen=True)
class Pages:
    """One layer's pages: keys and values [pages, kv_heads, page_size, D], scales [pages, kv_heads, page_size]."""

    keys: torch.Tensor
    values: torch.Tensor
    key_scales: torch.Tensor | None = None
    value_scales: torch.Tensor | None = None


@dataclass(frozen=True)
class Items:
    """Work items on the device: `heads` int32 [n, 3], `rows` int32 [n, tile // padded_share], -1 = none."""

    heads: torch.Tensor
    rows: torch.Tensor
    tile: int


def key_block(split: int) -> int:
    """Positions a step of the loop takes; divides the split.

    The same for every tile height, because a row's bits depend on it.
    """
    return max(16, min(64, split))


def wide_tile(head_dim: int) -> int:
    """Tile rows of an item over many rows: as many as stay in the registers."""
    return 64 if head_dim <= 128 else 32


def attend(
    shape: AttentionShape,
    q: torch.Tensor,
    pages: Pages,
    table: torch.Tensor,
    positions: torch.Tensor,
    items: Items,
    *,
    partial: tuple[torch.Tensor, torch.Tensor] | None = None,
    out: torch.Tensor | None = None,
) -> None:
    """Run the items; into `partial` (values [R, heads, splits, D], sums [R, heads, splits, 2], both fp32) or `out`.

    q [R, heads, D] in the type the products are made in (fp16, bf16, fp32), table int32 [sequences, blocks].
    """
    width = power_of_two(shape.head_dim, 16)
    part_values, part_sums = partial if partial is not None else (None, None)
    launch(
        attend_kernel,
        (len(items.heads), shape.kv_heads),
        {
            "q": q, "k_pages": pages.keys, "v_pages": pages.values, "k_scales": pages.key_scales,
            "v_scales": pages.value_scales, "table": table, "table_stride": table.stride(0), "positions": positions,
            "items": items.heads, "item_rows": items.rows, "part_values": part_values, "part_sums": part_sums,
            "out": out, "max_splits": 0 if part_sums is None else part_sums.shape[2],
        },
        {
            "HEADS": shape.heads, "KV_HEADS": shape.kv_heads, "SHARE_P": shape.padded_share, "D": shape.head_dim,
            "BLOCK_D": width, "PAGE": shape.page_size, "WINDOW": shape.window or 0, "SPLIT": shape.split,
            "SCALE": float(shape.scale), "QUANT": shape.quant, "PARTIAL": partial is not None,
            "BLOCK_M": items.tile, "BLOCK_N": key_block(shape.split),
            "PRECISION": "ieee" if q.dtype == torch.float32 else "tf32",
        },
        # Unpacking 8-bit pages takes registers: in a tall tile at four warps Triton 3.9 spills for sm_90.
        num_warps=8 if width > 128 or items.tile * width >= 64 * (64 if shape.quant else 128) else 4,
        # Wide heads of 8-bit pages need the registers of the second stage for unpacking.
        num_stages=1 if shape.quant and width > 128 and items.tile > 16 else 2,
        # In a low tile, left to itself, it stops at 96 for sm_90, and spills two.
        max_registers=255 if width > 128 or (shape.quant and items.tile <= 16) else None,
    )  # fmt: skip


def combine(
    shape: AttentionShape,
    partial: tuple[torch.Tensor, torch.Tensor],
    positions: torch.Tensor,
    rows: torch.Tensor,
    out: torch.Tensor,
    unfolded: torch.Tensor | None = None,
) -> None:
    """Merge the splits of the listed rows into out [R, heads, D].

    `unfolded` receives the only row once more, as `kernels.gpu.unfold` lays it out; D must then be a power of two.
    """
    part_values, part_sums = partial
    launch(
        combine_kernel,
        (len(rows), shape.heads),
        {
            "part_values": part_values, "part_sums": part_sums, "positions": positions, "rows": rows, "out": out,
            "unfolded": unfolded, "max_splits": part_sums.shape[2],
        },
        {
            "HEADS": shape.heads, "D": shape.head_dim, "BLOCK_D": power_of_two(shape.head_dim, 16),
            "WINDOW": shape.window or 0, "SPLIT": shape.split, "CHUNK": MERGE,
            "UNFOLD": unfolded is not None,
        },
    )  # fmt: skip
