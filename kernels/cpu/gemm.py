"""Products of packed weights with activation rows: one kernel a weight format, for any number of rows.

A kernel multiplies one *tile* (16 outputs, all inputs) with `n_rows` activation rows and writes 16 floats a row.  The
lanes of a vector are outputs, so nothing is ever summed across lanes.  Rows are taken 8, 4, 2, 1 at a time and share
the unpacking; integer products are exact and the floating-point order per row is fixed (group by group), so a row's
result is the same bits whatever the other rows are.

Layout of a tile, group by group of 32 inputs (see kernels/README.md for the drawing):

    Q4   4 x 64 bytes: byte (j, r, i) = q[row r, input 4j+i] | q[row r, input 16+4j+i] << 4;  16 scales; 16 minima
    Q8   8 x 64 bytes: byte (j, r, i) = q[row r, input 4j+i] + 128;                            16 scales
    F32, F16, BF16   input by input: 16 values

Scales and minima are fp16, or fp32 where a file's product of two scales does not fit fp16 (formats Q4F, Q8F).

An activation row is int8 [k], with its group scales s, s * sum(q) (floats) and -128 * sum(q) (i32) in `meta`
[3, k/32], or plain floats for the dense formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from llvmlite import ir
from numba import types

from kernels.cpu.isa import Isa, dot_i8, dot_u4
from kernels.cpu.vec import F16, F32, I8, I16, I32, Emitter, Loop, intrinsic

TILE = 16
"""Outputs of one tile."""
GROUP = 32
"""Inputs that share a scale."""

PREFETCH_AHEAD = 4096
"""Bytes between what is used and what is asked for; runs on into the next tile."""


class Format(IntEnum):
    """How a packed matrix is stored; keys the compiled kernel."""

    Q4H = 0
    Q4F = 1
    Q8H = 2
    Q8F = 3
    BF16 = 4
    F16 = 5
    F32 = 6

    @property
    def integer(self) -> bool:
        """True if activations are taken as int8 groups."""
        return self <= Format.Q8F

    @property
    def scale_bytes(self) -> int:
        return 2 if self in (Format.Q4H, Format.Q8H) else 4

    @property
    def group_bytes(self) -> int:
        """Bytes of 32 inputs of one tile."""
        if self in (Format.Q4H, Format.Q4F):
            return 4 * 64 + 2 * TILE * self.scale_bytes
        if self in (Format.Q8H, Format.Q8F):
            return 8 * 64 + TILE * self.scale_bytes
        return GROUP * TILE * (4 if self is Format.F32 else 2)

    def tile_bytes(self, k: int) -> int:
        return -(-k // GROUP) * self.group_bytes


class _Kernel:
    """Emits the loops of one format for one instruction family."""

    def __init__(self, builder: ir.IRBuilder, fmt: Format, isa: Isa, args: Sequence[ir.Value]) -> None:
        self.e = Emitter(builder)
        self.fmt, self.isa, self.lanes = fmt, isa, isa.lanes
        self.tile, self.groups, self.rows, self.quants, self.meta, self.floats, self.out, self.out_stride = args

    def emit(self) -> None:
        """Row blocks of 8, 4, 2 and 1, largest first."""
        e, b = self.e, self.e.b
        row: ir.Value = e.i64(0)
        biggest = 8 if self.isa.registers == 32 else 4
        for size in (8, 4, 2, 1):
            if size > biggest:
                continue
            stop = b.sub(self.rows, e.i64(size - 1))
            loop = Loop(e, row, stop, size)
            for sub in range(TILE // self.lanes):
                self._block(loop.index, size, sub)
            loop.close()
            row = loop.index

    def _block(self, row: ir.Value, size: int, sub: int) -> None:
        e, b, n = self.e, self.e.b, self.lanes
        k = b.mul(self.groups, e.i64(GROUP))
        loop = Loop(e, 0, self.groups, init=[e.zero(F32, n)] * size)
        base = b.add(self.tile, b.mul(loop.index, e.i64(self.fmt.group_bytes)))
        if sub == 0:
            e.prefetch(base, PREFETCH_AHEAD, self.fmt.group_bytes)
        if self.fmt.integer:
            sums = self._integer_group(base, row, k, loop.index, loop.values, sub)
        else:
            sums = self._dense_group(base, row, k, loop.index, loop.values, sub)
        sums = loop.close(sums)
        for i, total in enumerate(sums):
            at = b.mul(b.add(row, e.i64(i)), self.out_stride)
            e.store(total, self.out, b.add(at, e.i64(sub * n * 4)))

    def _scales(self, base: ir.Value, offset: int, sub: int) -> ir.Value:
        e, n, size = self.e, self.lanes, self.fmt.scale_bytes
        vtype = ir.VectorType(F16 if size == 2 else F32, n)
        scales = e.load(vtype, base, offset + sub * n * size)
        return e.f32(scales) if size == 2 else scales

    def _integer_group(self, base: ir.Value, row: ir.Value, k: ir.Value, group: ir.Value,
                       sums: Sequence[ir.Value], sub: int) -> list[ir.Value]:
        e, b, n = self.e, self.e.b, self.lanes
        four_bit = self.fmt in (Format.Q4H, Format.Q4F)
        v8 = ir.VectorType(I8, 4 * n)
        loaded = [e.load(v8, base, j * 64 + sub * n * 4) for j in range(4 if four_bit else 8)]
        scales = self._scales(base, 256 if four_bit else 512, sub)
        if four_bit:
            minima = self._scales(base, 256 + TILE * self.fmt.scale_bytes, sub)
            weights = [b.and_(v, e.splat_const(I8, 15, 4 * n)) for v in loaded]
            weights += [b.lshr(v, e.splat_const(I8, 4, 4 * n)) for v in loaded]
        else:
            weights = loaded
        result = []
        for i, total in enumerate(sums):
            at = b.add(row, e.i64(i))
            quants = b.add(self.quants, b.add(b.mul(at, k), b.mul(group, e.i64(GROUP))))
            # meta is [3, groups] of 4-byte values a row: scales, scaled sums, corrections
            meta = b.add(self.meta, b.mul(e.i64(4), b.add(b.mul(at, b.mul(self.groups, e.i64(3))), group)))
            plane = b.mul(self.groups, e.i64(4))
            quads = [e.load(I32, quants, 4 * j) for j in range(8)]
            scale = e.splat(e.load(F32, meta), n)
            if four_bit:
                dot = dot_u4(e, self.isa, weights, quads)
                scaled_sum = e.splat(e.load(F32, meta, plane), n)
                total = e.fma(minima, scaled_sum, total)
            else:
                correction = e.load(I32, meta, b.mul(plane, e.i64(2)))
                dot = dot_i8(e, self.isa, weights, quads, correction)
            as_float = b.sitofp(dot, ir.VectorType(F32, n))
            result.append(e.fma(as_float, b.fmul(scales, scale), total))
        return result

    def _dense_group(self, base: ir.Value, row: ir.Value, k: ir.Value, group: ir.Value,
                     sums: Sequence[ir.Value], sub: int) -> list[ir.Value]:
        e, b, n = self.e, self.e.b, self.lanes
        size = 4 if self.fmt is Format.F32 else 2
        inner = Loop(e, 0, e.i64(GROUP), init=sums)
        at = b.add(base, b.mul(inner.index, e.i64(TILE * size)))
        if self.fmt is Format.F16:
            weights = e.f32(e.load(ir.VectorType(F16, n), at, sub * n * 2))
        elif self.fmt is Format.BF16:
            raw = e.load(ir.VectorType(I16, n), at, sub * n * 2)
            wide = b.shl(b.zext(raw, ir.VectorType(I32, n)), e.splat_const(I32, 16, n))
            weights = b.bitcast(wide, ir.VectorType(F32, n))
        else:
            weights = e.load(ir.VectorType(F32, n), at, sub * n * 4)
        column = b.add(b.mul(group, e.i64(GROUP)), inner.index)
        result = []
        for i, total in enumerate(inner.values):
            element = b.add(b.mul(b.add(row, e.i64(i)), k), column)
            value = e.load(F32, self.floats, b.mul(element, e.i64(4)))
            result.append(e.fma(weights, e.splat(value, n), total))
        return inner.close(result)


@intrinsic(prefer_literal=True)
def tile_product(typingctx, fmt, isa, tile, groups, rows, quants, meta, floats, out, out_stride):
    """Emit the kernel; `fmt` and `isa` are literals, the rest i64 (addresses in bytes, `out_stride` in bytes)."""
    if not isinstance(fmt, types.IntegerLiteral) or not isinstance(isa, types.IntegerLiteral):
        return None
    which, family = Format(fmt.literal_value), Isa(isa.literal_value)

    def codegen(context, builder, signature, args):
        _Kernel(builder, which, family, args[2:]).emit()
        return context.get_dummy_value()

    return types.void(fmt, isa, *[types.int64] * 8), codegen
