"""The phases of a step: what is done to a range of items of one layer.

Every phase is `phase(context, layer, which, begin, end, thread)` over i64, called by address from the program (see
`team.run_program`).  Items of a phase are independent of each other; a phase starts when the one before is done.

========  ==============================  =========================================================================
phase     items                           does
========  ==============================  =========================================================================
embed     rows                            x = embedding * scale
enter     rows                            x += (post norm of) the last projection; norm; round to int8
linear    tiles x row blocks              qkv, wo or w_down
position  rows                            bias, head norms, RoPE, scale; keys and values into their pages
attend    (chunk set | strip) x KV heads  attention (attention.py)
gather    rows                            merge partial results; round to int8
gate      tile pairs x row blocks         act(gate) * up; round to int8
head      tiles x row blocks              logits
========  ==============================  =========================================================================
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kernels.cpu import context as c
from kernels.cpu.call import call8
from kernels.cpu.gemm import TILE, Format
from kernels.cpu.rowops import (
    add_to,
    copy_floats,
    f16_to_f32,
    gated,
    load_bf16,
    load_f32,
    load_i32,
    load_i64,
    load_u8,
    quantize_groups,
    scale_by,
    store_f16,
    store_f32,
    store_i8,
    subtract_groups,
    sum_squares,
)

_BF16, _F16, _F32 = int(Format.BF16), int(Format.F16), int(Format.F32)
_Q4H, _Q4F, _Q8H = int(Format.Q4H), int(Format.Q4F), int(Format.Q8H)

QKV, OUT, DOWN = range(3)
"""`which` of `linear`."""
BEFORE_ATTENTION, BEFORE_FFN, TOP = range(3)
"""`which` of `enter`."""


@njit
def slot(context, index):
    """One integer of the context."""
    return load_i64(context + 8 * index)


@njit
def layer_slot(context, layer, index):
    """One integer of a layer's row."""
    return load_i64(slot(context, c.LAYERS) + 8 * (layer * c.LAYER_SLOTS + index))


@njit
def matrix(context, layer, number):
    """A matrix record: data, kernel, groups, tile bytes, tiles."""
    base = slot(context, c.LAYERS) + 8 * (layer * c.LAYER_SLOTS + c.MATRICES + number * c.MATRIX_SLOTS)
    return (
        load_i64(base),
        load_i64(base + 8),
        load_i64(base + 16),
        load_i64(base + 24),
        load_i64(base + 32),
    )


@njit
def _scale_at(address, index, wide):
    return load_f32(address + 4 * index) if wide else f16_to_f32(address + 2 * index)


@njit
def embed_row(record, token, factor, out):
    """Write one embedding row as floats, times a factor (what `pack.unpack_row` gives)."""
    data, fmt = load_i64(record), load_i64(record + 8 * c.EMBED_FORMAT)
    groups, tile_bytes = load_i64(record + 8 * c.EMBED_GROUPS), load_i64(record + 8 * c.EMBED_TILE_BYTES)
    tile = data + (token // TILE) * tile_bytes
    lane = token % TILE
    four, eight = fmt <= _Q4F, fmt == _Q8H or fmt == _Q8H + 1
    wide = fmt == _Q4F or fmt == _Q8H + 1
    size = 4 if wide else 2
    group_bytes = tile_bytes // groups
    for g in range(groups):
        cell = tile + g * group_bytes
        target = out + g * 128
        if four:
            d = _scale_at(cell + 256, lane, wide)
            m = _scale_at(cell + 256 + TILE * size, lane, wide)
            for i in range(16):
                byte = load_u8(cell + (i // 4) * 64 + lane * 4 + i % 4)
                store_f32(np.float32((d * np.float32(byte & 15) + m) * factor), target + 4 * i)
                store_f32(np.float32((d * np.float32(byte >> 4) + m) * factor), target + 64 + 4 * i)
        elif eight:
            d = _scale_at(cell + 512, lane, wide)
            for i in range(32):
                byte = load_u8(cell + (i // 4) * 64 + lane * 4 + i % 4)
                store_f32(np.float32(d * np.float32(byte - 128) * factor), target + 4 * i)
        else:
            for i in range(32):
                at = i * TILE + lane
                if fmt == _BF16:
                    value = load_bf16(cell + 2 * at)
                elif fmt == _F16:
                    value = f16_to_f32(cell + 2 * at)
                else:
                    value = load_f32(cell + 4 * at)
                store_f32(np.float32(value * factor), target + 4 * i)


def embed(context, layer, which, begin, end, thread):
    """Rows of the residual stream from token ids."""
    record = slot(context, c.LAYERS) + 8 * (slot(context, c.N_LAYERS) + 1) * c.LAYER_SLOTS  # behind the top
    factor = load_f32(slot(context, c.FLOATS) + 8)
    for row in range(begin, end):
        token = load_i32(slot(context, c.TOKENS) + 4 * row)
        embed_row(record, token, factor, slot(context, c.X) + 4 * row * slot(context, c.HIDDEN))


@njit
def _rms_factor(x, n, eps):
    return np.float32(1.0) / np.sqrt(np.float32(sum_squares(x, n) / np.float32(n)) + eps)


def enter(context, layer, which, begin, end, thread):
    """Join the last projection to the residual stream, norm the result and round it.

    At the top items are the rows whose logits are wanted, and the normed rows are written next to each other.  There a
    row is rounded in two terms, the second one what the first left over: an error in the head's input goes straight
    into the logits, and the head alone would cause a third of the whole step's divergence from fp32.
    """
    n = slot(context, c.HIDDEN)
    eps = load_f32(slot(context, c.FLOATS))
    groups = n // 32
    norm = layer_slot(context, layer, c.FFN_NORM if which == BEFORE_FFN else c.ATTN_NORM)
    if which == BEFORE_FFN:
        post = layer_slot(context, layer, c.POST_ATTN)
    elif layer > 0:
        post = layer_slot(context, layer - 1, c.POST_FFN)
    else:
        post = 0
    for item in range(begin, end):
        row = load_i32(slot(context, c.LOGIT_ROWS) + 4 * item) if which == TOP else item
        x = slot(context, c.X) + 4 * row * n
        if layer > 0 or which == BEFORE_FFN:
            projected = slot(context, c.PROJ) + 4 * row * slot(context, c.PROJ_WIDTH)
            if post != 0:
                scale_by(projected, post, _rms_factor(projected, n, eps), projected, n)
            add_to(x, projected, n)
        h = slot(context, c.H) + 4 * item * n
        scale_by(x, norm, _rms_factor(x, n, eps), h, n)
        terms = slot(context, c.HEAD_TERMS) if which == TOP else 1
        for term in range(terms):
            quants = slot(context, c.H_Q) + (item * terms + term) * n
            meta = slot(context, c.H_META) + 12 * (item * terms + term) * groups
            quantize_groups(h, groups, quants, meta, 4 * groups)
            if term + 1 < terms:
                subtract_groups(h, groups, quants, meta)


@njit
def _multiply(context, layer, number, tile, first_row, rows, source, out, out_stride):
    """One tile of one matrix over some rows.  `source`: context slots of floats, int8, meta (three in a row)."""
    data, kernel, groups, tile_bytes, _ = matrix(context, layer, number)
    k = 32 * groups
    call8(
        kernel,
        data + tile * tile_bytes,
        groups,
        rows,
        slot(context, source + 1) + first_row * k,
        slot(context, source + 2) + first_row * 12 * groups,
        slot(context, source) + first_row * 4 * k,
        out + first_row * out_stride,
        out_stride,
    )


def linear(context, layer, which, begin, end, thread):
    """Tiles of the products that need nothing after them."""
    rows_total = slot(context, c.N_ROWS)
    block = slot(context, c.ROW_BLOCK)
    if which == QKV:
        q_tiles = matrix(context, layer, c.M_Q)[4]
        k_tiles = matrix(context, layer, c.M_K)[4]
        tiles = q_tiles + 2 * k_tiles
        out, width, source = slot(context, c.QKV), slot(context, c.QKV_WIDTH), c.H
    elif which == OUT:
        tiles = matrix(context, layer, c.M_O)[4]
        out, width, source = slot(context, c.PROJ), slot(context, c.PROJ_WIDTH), c.ATT
    else:
        tiles = matrix(context, layer, c.M_DOWN)[4]
        out, width, source = slot(context, c.PROJ), slot(context, c.PROJ_WIDTH), c.ACT
    for item in range(begin, end):
        first = (item // tiles) * block
        rows = min(block, rows_total - first)
        tile = item % tiles
        target = out + tile * TILE * 4
        number = c.M_O if which == OUT else c.M_DOWN
        if which == QKV:
            number = c.M_Q
            if tile >= q_tiles + k_tiles:
                number, tile = c.M_V, tile - q_tiles - k_tiles
            elif tile >= q_tiles:
                number, tile = c.M_K, tile - q_tiles
        _multiply(context, layer, number, tile, first, rows, source, target, width * 4)


def head(context, layer, which, begin, end, thread):
    """Tiles of the logits: the products of a row's terms, added."""
    rows_total = slot(context, c.N_LOGITS)
    block = slot(context, c.ROW_BLOCK) // 2
    terms = slot(context, c.HEAD_TERMS)
    tiles = matrix(context, layer, 0)[4]
    width = slot(context, c.VOCAB_WIDTH)
    scratch = slot(context, c.SCRATCH) + thread * slot(context, c.SCRATCH_BYTES)
    for item in range(begin, end):
        first = (item // tiles) * block
        rows = min(block, rows_total - first)
        tile = item % tiles
        # The kernel adds first_row * stride itself: start that much earlier.
        _multiply(context, layer, 0, tile, first * terms, rows * terms, c.H, scratch - first * terms * 64, 64)
        for r in range(rows):
            out = slot(context, c.LOGITS) + 4 * ((first + r) * width + tile * TILE)
            copy_floats(scratch + 64 * r * terms, out, TILE)
            if terms == 2:
                add_to(out, scratch + 64 * (2 * r + 1), TILE)


def gate(context, layer, which, begin, end, thread):
    """32 gated activations of each row: two tiles of w_gate, two of w_up, activation, rounding."""
    rows_total = slot(context, c.N_ROWS)
    block = slot(context, c.ROW_BLOCK)
    ffn = slot(context, c.FFN)
    pairs, groups = ffn // 32, ffn // 32
    scratch = slot(context, c.SCRATCH) + thread * slot(context, c.SCRATCH_BYTES)
    for item in range(begin, end):
        first = (item // pairs) * block
        rows = min(block, rows_total - first)
        pair = item % pairs
        for half in range(2):
            # The kernels add first_row * stride themselves: start that much earlier.
            at = scratch + 64 * half - first * 256
            _multiply(context, layer, c.M_GATE, 2 * pair + half, first, rows, c.H, at, 256)
            _multiply(context, layer, c.M_UP, 2 * pair + half, first, rows, c.H, at + 128, 256)
        for r in range(rows):
            row = first + r
            out = slot(context, c.ACT) + 4 * (row * ffn + 32 * pair)
            at = scratch + 256 * r
            if slot(context, c.ACTIVATION) == 0:
                gated(0, at, at + 128, out, 32)
            else:
                gated(1, at, at + 128, out, 32)
            meta = slot(context, c.ACT_META) + 12 * row * groups + 4 * pair
            quantize_groups(out, 1, slot(context, c.ACT_Q) + row * ffn + 32 * pair, meta, 4 * groups)


@njit
def _head_ready(x, head_dim, bias, norm, eps, rope, half, factor):
    """Bias, norm, rotation and scale of one head, in place."""
    if bias != 0:
        add_to(x, bias, head_dim)
    if norm != 0:
        scale_by(x, norm, _rms_factor(x, head_dim, eps), x, head_dim)
    for i in range(half):
        cos, sin = load_f32(rope + 4 * i), load_f32(rope + 4 * (half + i))
        a, b = load_f32(x + 4 * i), load_f32(x + 4 * (half + i))
        store_f32(np.float32((a * cos - b * sin) * factor), x + 4 * i)
        store_f32(np.float32((b * cos + a * sin) * factor), x + 4 * (half + i))
    if factor != np.float32(1):
        for i in range(2 * half, head_dim):
            store_f32(np.float32(load_f32(x + 4 * i) * factor), x + 4 * i)


@njit
def _int8_scale(x, n):
    """Scale and its inverse that bring n floats to -127..127."""
    largest = np.float32(0)
    for i in range(n):
        largest = max(largest, abs(load_f32(x + 4 * i)))
    if largest > 0:
        return largest / np.float32(127), np.float32(127) / largest
    return np.float32(0), np.float32(0)


@njit
def _store_kv(context, layer, store, page, offset, head, key, value):
    """One head's key and value of one position into its page (layout: attend.py)."""
    plan = slot(context, c.PLANS) + 8 * c.PLAN_SLOTS * layer_slot(context, layer, c.GROUP)
    page_size, blocks = load_i64(plan + 8 * c.P_PAGE), load_i64(plan + 8 * c.P_PAGE_BLOCKS)
    n, heads = slot(context, c.HEAD_DIM), slot(context, c.N_KV)
    cell = page * heads + head
    key_at = (cell * blocks + offset // 16) * n * 16 + offset % 16
    value_at = (cell * page_size + offset) * n
    keys, values = layer_slot(context, layer, c.KEYS), layer_slot(context, layer, c.VALUES)
    if store == 0:
        for i in range(n):
            store_f16(load_f32(key + 4 * i), keys + 2 * (key_at + 16 * i))
            store_f16(load_f32(value + 4 * i), values + 2 * (value_at + i))
    elif store == 1:
        for i in range(n):
            store_f32(load_f32(key + 4 * i), keys + 4 * (key_at + 16 * i))
            store_f32(load_f32(value + 4 * i), values + 4 * (value_at + i))
    else:
        scale, inverse = _int8_scale(key, n)
        store_f32(scale, layer_slot(context, layer, c.KEY_SCALES) + 4 * (cell * blocks * 16 + offset))
        for i in range(n):
            store_i8(np.int64(np.rint(load_f32(key + 4 * i) * inverse)), keys + key_at + 16 * i)
        scale, inverse = _int8_scale(value, n)
        store_f32(scale, layer_slot(context, layer, c.VALUE_SCALES) + 4 * (cell * page_size + offset))
        for i in range(n):
            store_i8(np.int64(np.rint(load_f32(value + 4 * i) * inverse)), values + value_at + i)


def position(context, layer, which, begin, end, thread):
    """Everything between the qkv product and attention, row by row."""
    n, heads, kv_heads = slot(context, c.HEAD_DIM), slot(context, c.N_HEADS), slot(context, c.N_KV)
    eps = load_f32(slot(context, c.FLOATS))
    attn_scale = load_f32(slot(context, c.FLOATS) + 4)
    half = layer_slot(context, layer, c.ROPE_HALF)
    bias = layer_slot(context, layer, c.BIAS)
    q_norm, k_norm = layer_slot(context, layer, c.Q_NORM), layer_slot(context, layer, c.K_NORM)
    q_width, kv_width = slot(context, c.Q_WIDTH), slot(context, c.KV_WIDTH)
    plan = slot(context, c.PLANS) + 8 * c.PLAN_SLOTS * layer_slot(context, layer, c.GROUP)
    page_size = load_i64(plan + 8 * c.P_PAGE)
    store = slot(context, c.STORE)
    for row in range(begin, end):
        place = load_i32(slot(context, c.POSITIONS) + 4 * row)
        rope = layer_slot(context, layer, c.ROPE) + place * 8 * half
        qkv = slot(context, c.QKV) + 4 * row * slot(context, c.QKV_WIDTH)
        for head in range(heads):
            at = 4 * head * n
            _head_ready(qkv + at, n, bias + at if bias != 0 else 0, q_norm, eps, rope, half, attn_scale)
        sequence = load_i32(slot(context, c.ROW_SEQ) + 4 * row)
        table = load_i64(plan + 8 * c.P_TABLE) + 4 * sequence * load_i64(plan + 8 * c.P_BLOCKS)
        page = load_i32(table + 4 * (place // page_size))
        for head in range(kv_heads):
            at = 4 * (q_width + head * n)
            _head_ready(qkv + at, n, bias + at if bias != 0 else 0, k_norm, eps, rope, half, np.float32(1))
            value = at + 4 * kv_width
            if bias != 0:
                add_to(qkv + value, bias + value, n)
            _store_kv(context, layer, store, page, place % page_size, head, qkv + at, qkv + value)
