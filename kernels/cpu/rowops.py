"""Operations on one row of floats: norms, activations, rounding to int8 groups, fp16 in and out.

Like the tile kernels these are intrinsics over addresses (bytes, as i64), 16 floats at a time.  Lengths are multiples
of 16 (of 32 where groups are formed).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from kernels.cpu.vec import F16, F32, I8, I16, I32, I64, Emitter, Loop, intrinsic

WIDTH = 16
_V = ir.VectorType(F32, WIDTH)


def _void(n: int):
    return types.void(*[types.int64] * n)


@intrinsic
def sum_squares(typingctx, x, n):
    """Sum of squares of n floats."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        loop = Loop(e, 0, args[1], WIDTH, init=[e.zero(F32, WIDTH)])
        v = e.load(_V, args[0], builder.mul(loop.index, e.i64(4)))
        (total,) = loop.close([e.fma(v, v, loop.values[0])])
        return e.reduce("fadd", total)

    return types.float32(types.int64, types.int64), codegen


@intrinsic
def scale_by(typingctx, x, weight, factor, out, n):
    """out = x * factor * weight, n floats; `out` may be `x`."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        x, weight, factor, out, n = args
        factor = e.splat(factor, WIDTH)
        loop = Loop(e, 0, n, WIDTH)
        at = builder.mul(loop.index, e.i64(4))
        v = builder.fmul(e.load(_V, x, at), factor)
        e.store(builder.fmul(v, e.load(_V, weight, at)), out, at)
        loop.close()
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32, types.int64, types.int64), codegen


@intrinsic
def add_to(typingctx, x, y, n):
    """x += y, n floats."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        loop = Loop(e, 0, args[2], WIDTH)
        at = builder.mul(loop.index, e.i64(4))
        e.store(builder.fadd(e.load(_V, args[0], at), e.load(_V, args[1], at)), args[0], at)
        loop.close()
        return context.get_dummy_value()

    return _void(3), codegen


@intrinsic
def copy_floats(typingctx, source, out, n):
    """out = source, n floats."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        loop = Loop(e, 0, args[2], WIDTH)
        at = builder.mul(loop.index, e.i64(4))
        e.store(e.load(_V, args[0], at), args[1], at)
        loop.close()
        return context.get_dummy_value()

    return _void(3), codegen


@intrinsic
def fill_floats(typingctx, out, value, n):
    """n floats from `out` on = value."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        value = e.splat(args[1], WIDTH)
        loop = Loop(e, 0, args[2], WIDTH)
        e.store(value, args[0], builder.mul(loop.index, e.i64(4)))
        loop.close()
        return context.get_dummy_value()

    return types.void(types.int64, types.float32, types.int64), codegen


@intrinsic
def quantize_groups(typingctx, x, groups, quants, meta, plane):
    """Round `groups` x 32 floats to int8, scale = largest / 127.

    Writes quants [32 * groups] and, at meta + {0, 1, 2} * plane, scale (f32), scale * sum of quants (f32) and
    -128 * sum of quants (i32) of each group.
    """

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        x, groups, quants, meta, plane = args
        loop = Loop(e, 0, groups)
        at = b.mul(loop.index, e.i64(128))
        halves = [e.load(_V, x, at), e.load(_V, x, b.add(at, e.i64(64)))]
        largest = e.reduce("fmax", e.fmax(e.unary("fabs", halves[0]), e.unary("fabs", halves[1])))
        positive = b.fcmp_ordered(">", largest, ir.Constant(F32, 0.0))
        inverse = b.select(positive, b.fdiv(ir.Constant(F32, 127.0), largest), ir.Constant(F32, 0.0))
        scale = b.fmul(largest, ir.Constant(F32, 1.0 / 127.0))
        sums = None
        for i, half in enumerate(halves):
            rounded = e.unary("rint", b.fmul(half, e.splat(inverse, WIDTH)))
            ints = b.fptosi(rounded, ir.VectorType(I32, WIDTH))
            sums = ints if sums is None else b.add(sums, ints)
            small = b.trunc(ints, ir.VectorType(I8, WIDTH))
            e.store(small, quants, b.add(b.mul(loop.index, e.i64(32)), e.i64(16 * i)))
        total = e.reduce("add", sums)
        slot = b.add(meta, b.mul(loop.index, e.i64(4)))
        e.store(scale, slot)
        e.store(b.fmul(scale, b.sitofp(total, F32)), slot, plane)
        e.store(b.mul(total, ir.Constant(I32, -128)), slot, b.mul(plane, e.i64(2)))
        loop.close()
        return context.get_dummy_value()

    return _void(5), codegen


@intrinsic
def subtract_groups(typingctx, x, groups, quants, meta):
    """x -= scale * quants: what rounding left of `groups` x 32 floats."""

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        x, groups, quants, meta = args
        loop = Loop(e, 0, groups)
        scale = e.splat(b.fneg(e.load(F32, meta, b.mul(loop.index, e.i64(4)))), WIDTH)
        for half in range(2):
            small = e.load(ir.VectorType(I8, WIDTH), quants, b.add(b.mul(loop.index, e.i64(32)), e.i64(16 * half)))
            wide = b.sitofp(b.sext(small, ir.VectorType(I32, WIDTH)), _V)
            at = b.add(b.mul(loop.index, e.i64(128)), e.i64(64 * half))
            e.store(e.fma(wide, scale, e.load(_V, x, at)), x, at)
        loop.close()
        return context.get_dummy_value()

    return _void(4), codegen


@intrinsic(prefer_literal=True)
def gated(typingctx, kind, gate, up, out, n):
    """out = act(gate) * up for n floats; kind 0: SiLU, 1: GELU (tanh form).  Both are x / (1 + exp(-y))."""

    def codegen(context, builder, signature, args):
        e, b = Emitter(builder), builder
        _, gate, up, out, n = args
        loop = Loop(e, 0, n, WIDTH)
        at = b.mul(loop.index, e.i64(4))
        x = e.load(_V, gate, at)
        if kind.literal_value == 0:
            y = b.fneg(x)
        else:
            # 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z)),  z = sqrt(2 / pi) (x + 0.044715 x^3)
            cube = b.fmul(b.fmul(x, x), x)
            z = e.fma(cube, e.splat_const(F32, 0.044715, WIDTH), x)
            y = b.fmul(z, e.splat_const(F32, -1.5957691216057308, WIDTH))
        high = e.splat_const(F32, 87.0, WIDTH)
        y = b.select(b.fcmp_ordered("<", y, high), y, high)
        value = b.fdiv(x, b.fadd(e.splat_const(F32, 1.0, WIDTH), e.exp(y)))
        e.store(b.fmul(value, e.load(_V, up, at)), out, at)
        loop.close()
        return context.get_dummy_value()

    if not isinstance(kind, types.IntegerLiteral):
        return None
    return types.void(kind, *[types.int64] * 4), codegen


@intrinsic
def f16_to_f32(typingctx, address):
    """One fp16 value at an address."""

    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        return builder.fpext(e.load(F16, args[0], align=2), F32)

    return types.float32(types.int64), codegen


@intrinsic
def store_f16(typingctx, value, address):
    """Round one float32 to fp16 and store it."""

    def codegen(context, builder, signature, args):
        Emitter(builder).store(builder.fptrunc(args[0], F16), args[1], align=2)
        return context.get_dummy_value()

    return types.void(types.float32, types.int64), codegen


def _loader(result, llvm_type):
    def codegen(context, builder, signature, args):
        e = Emitter(builder)
        value = e.load(llvm_type, args[0], align=1)
        return builder.sext(value, I64) if isinstance(llvm_type, ir.IntType) and llvm_type.width < 64 else value

    return result(types.int64), codegen


@intrinsic
def load_i64(typingctx, address):
    """The 64-bit integer at an address."""
    return _loader(types.int64, I64)


@intrinsic
def load_i32(typingctx, address):
    """The 32-bit integer at an address, as 64-bit."""
    return _loader(types.int64, I32)


@intrinsic
def load_u8(typingctx, address):
    """The byte at an address, 0..255, as 64-bit."""

    def codegen(context, builder, signature, args):
        return builder.zext(Emitter(builder).load(I8, args[0], align=1), I64)

    return types.int64(types.int64), codegen


@intrinsic
def load_bf16(typingctx, address):
    """One bf16 value at an address, as float32."""

    def codegen(context, builder, signature, args):
        raw = builder.zext(Emitter(builder).load(I16, args[0], align=2), I32)
        return builder.bitcast(builder.shl(raw, ir.Constant(I32, 16)), F32)

    return types.float32(types.int64), codegen


@intrinsic
def load_f32(typingctx, address):
    """One float32 at an address."""
    return _loader(types.float32, F32)


@intrinsic
def store_f32(typingctx, value, address):
    """Store one float32."""

    def codegen(context, builder, signature, args):
        Emitter(builder).store(args[0], args[1], align=4)
        return context.get_dummy_value()

    return types.void(types.float32, types.int64), codegen


@intrinsic
def store_i8(typingctx, value, address):
    """Store the low byte of an integer."""

    def codegen(context, builder, signature, args):
        Emitter(builder).store(builder.trunc(args[0], I8), args[1])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def store_i32(typingctx, value, address):
    """Store the low 32 bits of an integer."""

    def codegen(context, builder, signature, args):
        Emitter(builder).store(builder.trunc(args[0], I32), args[1], align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
