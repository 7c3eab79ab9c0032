"""Phases `attend` and `gather`: paged attention over chunks of fixed size.

A context is cut at multiples of a fixed number of positions, whatever the batch.  A query vector's result for one chunk
is (sums [head_dim], maximum, sum of weights); chunks are merged first to last.  How the work is spread — one chunk at a
time for decoding rows, all chunks in one go for a strip of prefill rows, several sequences together on pages they
share — changes who computes a chunk and never what is computed, so results are equal bit for bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kernels.cpu import context as c
from kernels.cpu.attend import merge, softmax_part
from kernels.cpu.call import call9
from kernels.cpu.phases import layer_slot, slot
from kernels.cpu.rowops import (
    copy_floats,
    fill_floats,
    load_f32,
    load_i32,
    load_i64,
    quantize_groups,
    store_f32,
    store_i32,
)

_EMPTY = np.float32(-np.inf)


@njit
def plan_slot(plan, index):
    """One integer of an attention plan."""
    return load_i64(plan + 8 * index)


@njit
def _chunk_parts(plan, chunk, part):
    """Part `part` of a chunk: logical page, first offset in it, positions, first score slot; one part per page."""
    size, length = plan_slot(plan, c.P_PAGE), plan_slot(plan, c.P_CHUNK)
    if length <= size:
        per_page = size // length
        return chunk // per_page, (chunk % per_page) * length, length, 0
    return chunk * (length // size) + part, 0, size, part * 16 * ((size + 15) // 16)


@njit
def _keys_of(plan, table, chunk, part, kv_head, heads, keys, d, item):
    """Address of the keys of one part of a chunk; of page 0 if the part has no page."""
    logical, offset, _, _ = _chunk_parts(plan, chunk, part)
    page = load_i32(table + 4 * logical) if logical < plan_slot(plan, c.P_BLOCKS) else 0
    block = (max(page, 0) * heads + kv_head) * plan_slot(plan, c.P_PAGE_BLOCKS) + offset // 16
    return keys + block * d * 16 * item


@njit
def _attend_chunk(context, layer, plan, table, chunk, n, queries, bounds, scores, sums, stats, kv_head,
                  next_table, next_chunk, next_head):
    """n query vectors against one chunk: scores, softmax, values.

    queries [n, head_dim]; bounds int32 [n, 2]: positions low..high - 1 are seen.  sums [n, head_dim] and
    stats [n, 2] (maximum, sum of weights) are written.
    """
    d = slot(context, c.HEAD_DIM)
    heads = slot(context, c.N_KV)
    store = slot(context, c.STORE)
    item = 2 if store == 0 else (4 if store == 1 else 1)
    size, length = plan_slot(plan, c.P_PAGE), plan_slot(plan, c.P_CHUNK)
    page_blocks = plan_slot(plan, c.P_PAGE_BLOCKS)
    slots = plan_slot(plan, c.P_SLOTS)
    keys, values = layer_slot(context, layer, c.KEYS), layer_slot(context, layer, c.VALUES)
    key_scales, value_scales = layer_slot(context, layer, c.KEY_SCALES), layer_slot(context, layer, c.VALUE_SCALES)
    parts = 1 if length <= size else length // size
    low, high = load_i32(bounds), load_i32(bounds + 4)
    for i in range(1, n):
        low = min(low, load_i32(bounds + 8 * i))
        high = max(high, load_i32(bounds + 8 * i + 4))
    used = 0
    for part in range(parts):
        logical, offset, count, first = _chunk_parts(plan, chunk, part)
        start = logical * size + offset
        if start >= high:
            break
        used = first + 16 * ((count + 15) // 16)
        if start + count <= low:
            continue
        cell = load_i32(table + 4 * logical) * heads + kv_head
        block = cell * page_blocks + offset // 16
        # Blocks past the last seen position hold nothing yet: they are masked below, not computed.
        blocks = (min(count, high - start) + 15) // 16
        call9(
            slot(context, c.SCORES_KERNEL),
            n,
            queries,
            d,
            keys + block * d * 16 * item,
            key_scales + block * 64,
            blocks,
            scores + 4 * first,
            4 * slots,
            # The part's values come next.
            values + (cell * size + offset) * d * item - (keys + block * d * 16 * item),
        )
    begins, ends = chunk * length, (chunk + 1) * length
    gaps = slots != length  # pages that are no multiple of 16 leave slots without a position
    for i in range(n):
        row_low, row_high = load_i32(bounds + 8 * i), load_i32(bounds + 8 * i + 4)
        row = scores + 4 * slots * i
        if row_low <= begins and row_high >= ends and not gaps:
            softmax_part(row, used, stats + 8 * i)
            continue
        for part in range(parts):
            logical, offset, count, first = _chunk_parts(plan, chunk, part)
            if first >= used:
                break
            start = logical * size + offset
            padded = 16 * ((count + 15) // 16)
            begin = min(max(row_low - start, 0), padded)
            stop = max(min(row_high - start, count), begin)
            for s in range(begin):
                store_f32(_EMPTY, row + 4 * (first + s))
            for s in range(stop, padded):
                store_f32(_EMPTY, row + 4 * (first + s))
        softmax_part(row, used, stats + 8 * i)
    fill_floats(sums, np.float32(0), n * d)
    for part in range(parts):
        logical, offset, count, first = _chunk_parts(plan, chunk, part)
        start = logical * size + offset
        begin, stop = max(low - start, 0), min(high - start, count)
        if begin >= stop:
            continue
        cell = load_i32(table + 4 * logical) * heads + kv_head
        at = cell * size + offset + begin
        call9(
            slot(context, c.VALUES_KERNEL),
            n,
            scores + 4 * (first + begin),
            4 * slots,
            values + at * d * item,
            value_scales + 4 * at,
            stop - begin,
            d,
            sums,
            _keys_of(plan, next_table, next_chunk, part, next_head, heads, keys, d, item) - (values + at * d * item),
        )


@njit
def _take_queries(context, layer, plan, row, kv_head, share, queries, bounds):
    """Copy the query vectors of one row that belong to a key/value head; note what they see."""
    d = slot(context, c.HEAD_DIM)
    source = slot(context, c.QKV) + 4 * (row * slot(context, c.QKV_WIDTH) + kv_head * share * d)
    copy_floats(source, queries, share * d)
    place = load_i32(slot(context, c.POSITIONS) + 4 * row)
    window = plan_slot(plan, c.P_WINDOW)
    low = max(0, place - window + 1) if window > 0 else 0
    for i in range(share):
        store_i32(low, bounds + 8 * i)
        store_i32(place + 1, bounds + 8 * i + 4)


@njit
def _finish(context, row, head, total, stats):
    """Divide by the sum of weights and put the head into its place."""
    d = slot(context, c.HEAD_DIM)
    out = slot(context, c.ATT) + 4 * (row * slot(context, c.N_HEADS) + head) * d
    inverse = np.float32(1) / load_f32(stats + 4)
    for i in range(d):
        store_f32(np.float32(load_f32(total + 4 * i) * inverse), out + 4 * i)


def attend(context, layer, which, begin, end, thread):
    """Items: first (chunk set, KV head) pairs, whose partial results `gather` merges; then (strip, KV head)."""
    plan = slot(context, c.PLANS) + 8 * c.PLAN_SLOTS * layer_slot(context, layer, c.GROUP)
    d, kv_heads, heads = slot(context, c.HEAD_DIM), slot(context, c.N_KV), slot(context, c.N_HEADS)
    share = heads // kv_heads
    length = plan_slot(plan, c.P_CHUNK)
    slots = plan_slot(plan, c.P_SLOTS)
    most = which  # query vectors that fit the scratch
    scratch = slot(context, c.SCRATCH) + thread * slot(context, c.SCRATCH_BYTES)
    queries = scratch
    sums = queries + 4 * most * d
    totals = sums + 4 * most * d
    scores = totals + 4 * most * d
    bounds = scores + 4 * most * slots
    stats = bounds + 8 * most
    total_stats = stats + 8 * most
    n_sets = plan_slot(plan, c.P_N_SETS)
    blocks = plan_slot(plan, c.P_BLOCKS)
    for item in range(begin, end):
        entry, kv_head = item // kv_heads, item % kv_heads
        if entry < n_sets:
            record = plan_slot(plan, c.P_SETS) + 16 * entry
            chunk, first = load_i32(record), load_i32(record + 4)
            n_rows, sequence = load_i32(record + 8), load_i32(record + 12)
            table = plan_slot(plan, c.P_TABLE) + 4 * sequence * blocks
            at_once = max(1, most // share)
            done = 0
            next_table, next_chunk, next_head = table, chunk, (item + 1) % kv_heads
            if next_head == 0 and entry + 1 < n_sets:
                next_chunk = load_i32(record + 16)
                next_table = plan_slot(plan, c.P_TABLE) + 4 * load_i32(record + 28) * blocks
            while done < n_rows:
                now = min(at_once, n_rows - done)
                rows = plan_slot(plan, c.P_SET_ROWS) + 4 * (first + done)
                for r in range(now):
                    into = r * share
                    _take_queries(context, layer, plan, load_i32(rows + 4 * r), kv_head, share,
                                  queries + 4 * into * d, bounds + 8 * into)
                _attend_chunk(context, layer, plan, table, chunk, now * share, queries, bounds, scores, sums, stats,
                              kv_head, next_table, next_chunk, next_head)
                for r in range(now):
                    row = load_i32(rows + 4 * r)
                    part = load_i32(plan_slot(plan, c.P_PART_BASE) + 4 * row)
                    part += chunk - load_i32(plan_slot(plan, c.P_FIRST_CHUNK) + 4 * row)
                    target = slot(context, c.PARTS) + 4 * (part * heads + kv_head * share) * (d + 16)
                    for i in range(share):
                        q = r * share + i
                        out = target + 4 * i * (d + 16)
                        store_f32(load_f32(stats + 8 * q), out)
                        store_f32(load_f32(stats + 8 * q + 4), out + 4)
                        copy_floats(sums + 4 * q * d, out + 64, d)
                done += now
            continue
        record = plan_slot(plan, c.P_STRIPS) + 8 * (entry - n_sets)
        first, n_rows = load_i32(record), load_i32(record + 4)
        sequence = load_i32(slot(context, c.ROW_SEQ) + 4 * first)
        table = plan_slot(plan, c.P_TABLE) + 4 * sequence * blocks
        n = n_rows * share
        for r in range(n_rows):
            _take_queries(context, layer, plan, first + r, kv_head, share, queries + 4 * r * share * d,
                          bounds + 8 * r * share)
        for i in range(n):
            store_f32(_EMPTY, total_stats + 8 * i)
            store_f32(np.float32(0), total_stats + 8 * i + 4)
        fill_floats(totals, np.float32(0), n * d)
        low, high = load_i32(bounds), load_i32(bounds + 8 * (n - 1) + 4)
        for chunk in range(low // length, (high - 1) // length + 1):
            _attend_chunk(context, layer, plan, table, chunk, n, queries, bounds, scores, sums, stats, kv_head,
                          table, chunk + 1, kv_head)
            for i in range(n):
                if load_f32(stats + 8 * i) > _EMPTY:
                    merge(totals + 4 * i * d, total_stats + 8 * i, sums + 4 * i * d, stats + 8 * i, d)
        for r in range(n_rows):
            for i in range(share):
                q = r * share + i
                _finish(context, first + r, kv_head * share + i, totals + 4 * q * d, total_stats + 8 * q)


def gather(context, layer, which, begin, end, thread):
    """Rows: merge what `attend` left in parts, then round the row for the output product."""
    plan = slot(context, c.PLANS) + 8 * c.PLAN_SLOTS * layer_slot(context, layer, c.GROUP)
    d, heads = slot(context, c.HEAD_DIM), slot(context, c.N_HEADS)
    groups = heads * d // 32
    scratch = slot(context, c.SCRATCH) + thread * slot(context, c.SCRATCH_BYTES)
    stats = scratch + 4 * d
    for row in range(begin, end):
        base = load_i32(plan_slot(plan, c.P_PART_BASE) + 4 * row)
        if base >= 0:
            n = load_i32(plan_slot(plan, c.P_LAST_CHUNK) + 4 * row)
            n -= load_i32(plan_slot(plan, c.P_FIRST_CHUNK) + 4 * row) - 1
            for head in range(heads):
                store_f32(_EMPTY, stats)
                store_f32(np.float32(0), stats + 4)
                fill_floats(scratch, np.float32(0), d)
                for chunk in range(n):
                    part = slot(context, c.PARTS) + 4 * ((base + chunk) * heads + head) * (d + 16)
                    if load_f32(part) > _EMPTY:
                        merge(scratch, stats, part + 64, part, d)
                _finish(context, row, head, scratch, stats)
        out = slot(context, c.ATT) + 4 * row * heads * d
        meta = slot(context, c.ATT_META) + 12 * row * groups
        quantize_groups(out, groups, slot(context, c.ATT_Q) + row * heads * d, meta, 4 * groups)
