"""The inner loops of attention: scores, softmax, weighted sum of values, merging of partial results.

Pages lie so that nothing is summed across lanes.  Keys of one page and key/value head are blocks of 16 positions,
dimension by dimension: K [blocks, head_dim, 16].  Values are V [page_size, head_dim].  A *query vector* is one head of
one row; all query vectors that see the same keys (the heads of a GQA group, the rows of a chunk, forks on a shared
prefix) are computed together, so that a key or value is loaded and widened once for up to twelve of them.  Each query
vector's own operations are the same, in the same order, whatever the company.

int8 pages hold one float32 scale per position and head: K scales [blocks, 16], V scales [page_size].
"""

from __future__ import annotations

from enum import IntEnum

from llvmlite import ir
from numba import types

from kernels.cpu.isa import Isa
from kernels.cpu.vec import F16, F32, I8, I32, Emitter, Loop, intrinsic

WIDTH = 16
"""Positions of a key block and floats of a slice of a head."""


def _blocking(isa: Isa) -> tuple[tuple[int, ...], int]:
    """Numbers of query vectors that have a loop of their own, and how many sums (vectors of 16) stay in registers."""
    return ((12, 8, 4, 3, 2, 1), 24) if isa is Isa.AVX512 else ((4, 3, 2, 1), 4)

_V = ir.VectorType(F32, WIDTH)


class Store(IntEnum):
    """What a page holds; keys the compiled code."""

    F16 = 0
    F32 = 1
    I8 = 2

    @property
    def item_bytes(self) -> int:
        return {Store.F16: 2, Store.F32: 4, Store.I8: 1}[self]


def _widen(e: Emitter, store: Store, address: ir.Value, offset: ir.Value | int) -> ir.Value:
    """16 stored values as float32 (int8 without their scale)."""
    if store is Store.F32:
        return e.load(_V, address, offset)
    if store is Store.F16:
        return e.f32(e.load(ir.VectorType(F16, WIDTH), address, offset))
    raw = e.load(ir.VectorType(I8, WIDTH), address, offset)
    return e.b.sitofp(e.b.sext(raw, ir.VectorType(I32, WIDTH)), _V)


def _row_blocks(e: Emitter, n: ir.Value, counts: tuple[int, ...], emit) -> None:
    """Run emit(first, count) over n query vectors, as many at a time as possible."""
    start: ir.Value = e.i64(0)
    for count in counts:
        loop = Loop(e, start, e.b.sub(n, e.i64(count - 1)), count)
        emit(loop.index, count)
        loop.close()
        start = loop.index


@intrinsic(prefer_literal=True)
def scores(typingctx, isa, store, n, queries, head_dim, keys, key_scales, n_blocks, out, out_stride, ahead):
    """out[i, 16 * block + lane] = q_i . k for n query vectors [n, head_dim] and n_blocks blocks of keys.

    `out_stride` is in bytes.  While a key is used, what lies `ahead` bytes from it is fetched: whatever is needed next.
    Queries carry the attention scale already.
    """
    if not all(isinstance(t, types.IntegerLiteral) for t in (isa, store)):
        return None
    counts, most_sums = _blocking(Isa(isa.literal_value))
    kind = Store(store.literal_value)

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        _, _, n, queries, head_dim, keys, key_scales, n_blocks, out, out_stride, ahead = args
        row_bytes = b.mul(head_dim, e.i64(4))
        block_bytes = b.mul(head_dim, e.i64(WIDTH * kind.item_bytes))

        def blocks(first: ir.Value, count: int, block: ir.Value, n_together: int) -> None:
            base = b.add(keys, b.mul(block, block_bytes))
            rows = [b.add(queries, b.mul(b.add(first, e.i64(i)), row_bytes)) for i in range(count)]
            dims = Loop(e, 0, head_dim, init=[e.zero(F32, WIDTH)] * (count * n_together))
            stretch = WIDTH * kind.item_bytes * n_together
            e.prefetch(base, b.add(ahead, b.mul(dims.index, e.i64(stretch))), stretch)
            at = b.mul(dims.index, e.i64(WIDTH * kind.item_bytes))
            loaded = [
                _widen(e, kind, b.add(base, b.mul(e.i64(j), block_bytes)), at) for j in range(n_together)
            ]
            sums = []
            for i in range(count):
                q = e.splat(e.load(F32, rows[i], b.mul(dims.index, e.i64(4))), WIDTH)
                sums += [e.fma(q, k, dims.values[i * n_together + j]) for j, k in enumerate(loaded)]
            sums = dims.close(sums)
            for j in range(n_together):
                here = b.add(block, e.i64(j))
                scale = None
                if kind is Store.I8:
                    scale = e.load(_V, key_scales, b.mul(here, e.i64(WIDTH * 4)))
                for i in range(count):
                    total = sums[i * n_together + j]
                    total = total if scale is None else b.fmul(total, scale)
                    row = b.add(out, b.mul(b.add(first, e.i64(i)), out_stride))
                    e.store(total, row, b.mul(here, e.i64(WIDTH * 4)))

        def rows_block(first: ir.Value, count: int) -> None:
            together = max(1, min(4, most_sums // count))
            loop = Loop(e, 0, b.sub(n_blocks, e.i64(together - 1)), together)
            blocks(first, count, loop.index, together)
            loop.close()
            if together > 1:
                rest = Loop(e, loop.index, n_blocks)
                blocks(first, count, rest.index, 1)
                rest.close()

        _row_blocks(e, n, counts, rows_block)
        return context.get_dummy_value()

    return types.void(isa, store, *[types.int64] * 9), codegen


@intrinsic
def softmax_part(typingctx, row, n, stats):
    """exp(row - max) in place over n scores (a multiple of 16); stats <- max, sum.

    A row that is -inf throughout gives max -inf, sum 0 and zeros.
    """

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        row, n, stats = args
        lowest = ir.Constant(F32, float("-inf"))
        loop = Loop(e, 0, n, WIDTH, init=[e.splat_const(F32, float("-inf"), WIDTH)])
        v = e.load(_V, row, b.mul(loop.index, e.i64(4)))
        (top,) = loop.close([e.fmax(v, loop.values[0])])
        largest = e.reduce("fmax", top)
        empty = b.fcmp_ordered("==", largest, lowest)
        base = e.splat(b.select(empty, ir.Constant(F32, 0.0), largest), WIDTH)
        loop = Loop(e, 0, n, WIDTH, init=[e.zero(F32, WIDTH)])
        at = b.mul(loop.index, e.i64(4))
        p = e.exp(b.fsub(e.load(_V, row, at), base))
        e.store(p, row, at)
        (total,) = loop.close([b.fadd(loop.values[0], p)])
        e.store(largest, stats)
        e.store(e.reduce("fadd", total), stats, 4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def weighted_values(typingctx, isa, store, n, weights, weight_stride, values, value_scales, n_positions, head_dim,
                    sums, ahead):
    """sums[i] += sum over positions of weights[i, position] * V[position]; n query vectors, sums [n, head_dim]."""
    if not all(isinstance(t, types.IntegerLiteral) for t in (isa, store)):
        return None
    counts, most_sums = _blocking(Isa(isa.literal_value))
    kind = Store(store.literal_value)

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        _, _, n, weights, weight_stride, values, value_scales, n_positions, head_dim, sums, ahead = args
        row_bytes = b.mul(head_dim, e.i64(4))
        value_bytes = b.mul(head_dim, e.i64(kind.item_bytes))

        def slices(first: ir.Value, count: int, dim: ir.Value, width: int) -> None:
            """`width` vectors of 16 dimensions from `dim` on."""
            rows = [b.add(sums, b.mul(b.add(first, e.i64(i)), row_bytes)) for i in range(count)]
            start = b.mul(dim, e.i64(4))
            init: list[ir.Value] = []
            for row in rows:
                init += [e.load(_V, row, b.add(start, e.i64(64 * j))) for j in range(width)]
            loop = Loop(e, 0, n_positions, init=init)
            base = b.add(b.add(values, b.mul(loop.index, value_bytes)), b.mul(dim, e.i64(kind.item_bytes)))
            loaded = [_widen(e, kind, base, WIDTH * kind.item_bytes * j) for j in range(width)]
            e.prefetch(base, ahead, WIDTH * kind.item_bytes * width)
            scale = None
            if kind is Store.I8:
                scale = e.load(F32, value_scales, b.mul(loop.index, e.i64(4)))
            new: list[ir.Value] = []
            for i in range(count):
                row = b.add(weights, b.mul(b.add(first, e.i64(i)), weight_stride))
                p = e.load(F32, row, b.mul(loop.index, e.i64(4)))
                p = e.splat(p if scale is None else b.fmul(p, scale), WIDTH)
                new += [e.fma(p, v, loop.values[i * width + j]) for j, v in enumerate(loaded)]
            new = loop.close(new)
            for i, row in enumerate(rows):
                for j in range(width):
                    e.store(new[i * width + j], row, b.add(start, e.i64(64 * j)))

        def rows_block(first: ir.Value, count: int) -> None:
            width = max(1, min(4, most_sums // count))
            loop = Loop(e, 0, b.sub(head_dim, e.i64(WIDTH * width - 1)), WIDTH * width)
            slices(first, count, loop.index, width)
            loop.close()
            if width > 1:
                rest = Loop(e, loop.index, head_dim, WIDTH)
                slices(first, count, rest.index, 1)
                rest.close()

        _row_blocks(e, n, counts, rows_block)
        return context.get_dummy_value()

    return types.void(isa, store, *[types.int64] * 9), codegen


@intrinsic
def merge(typingctx, total, total_stats, part, part_stats, head_dim):
    """Fold a partial result into a running one: (sums, (max, sum of weights)) both, log-sum-exp.

    The running one may be empty (max -inf, sum 0); the part must not be.
    """

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        total, total_stats, part, part_stats, head_dim = args
        m0, l0, m1, l1 = (e.load(F32, s, o) for s, o in ((total_stats, 0), (total_stats, 4), (part_stats, 0),
                                                         (part_stats, 4)))
        top = e.fmax(m0, m1)
        lanes = ir.Constant(ir.VectorType(F32, 4), [0.0] * 4)
        for i, m in enumerate((m0, m1)):
            lanes = b.insert_element(lanes, b.fsub(m, top), ir.Constant(I32, i))
        factors = e.exp(lanes)
        f0, f1 = (b.extract_element(factors, ir.Constant(I32, i)) for i in range(2))
        e.store(top, total_stats)
        e.store(e.fma(l0, f0, b.fmul(l1, f1)), total_stats, 4)
        f0, f1 = e.splat(f0, WIDTH), e.splat(f1, WIDTH)
        loop = Loop(e, 0, head_dim, WIDTH)
        at = b.mul(loop.index, e.i64(4))
        new = e.fma(e.load(_V, total, at), f0, b.fmul(e.load(_V, part, at), f1))
        e.store(new, total, at)
        loop.close()
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), codegen


