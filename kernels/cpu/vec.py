"""Small vocabulary for writing vector code as LLVM IR from inside Numba.

Numba has no vector type, and leaving the hot loops to the auto-vectoriser makes them fast on one machine and slow on
the next.  The kernels here are therefore `intrinsic`s that emit LLVM vectors directly.  Nothing carries fast-math
flags: the order of every floating-point operation is the one written, so equal inputs give equal bits whatever
number of rows is computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic
"""Numba's decorator; a type checker would count the typing context among the arguments of each call."""

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F16, F32 = ir.HalfType(), ir.FloatType()


PREFETCH_LOCALITY = 2
"""Into the second-level cache: measured a fifth faster than into the first, and the code reaches far ahead."""


class Emitter:
    """An `ir.IRBuilder` with the handful of operations that the kernels need.  `b` is the builder itself."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder

    # -- constants and types -------------------------------------------------------------------------------------
    def i64(self, value: int) -> ir.Constant:
        return ir.Constant(I64, value)

    def splat_const(self, scalar_type: ir.Type, value: Any, n: int) -> ir.Constant:
        return ir.Constant(ir.VectorType(scalar_type, n), [value] * n)

    def zero(self, scalar_type: ir.Type, n: int) -> ir.Constant:
        return self.splat_const(scalar_type, 0.0 if isinstance(scalar_type, ir.FloatType) else 0, n)

    # -- memory --------------------------------------------------------------------------------------------------
    def at(self, address: ir.Value, offset: ir.Value | int) -> ir.Value:
        """Address plus byte offset, still an integer."""
        if isinstance(offset, int):
            if offset == 0:
                return address
            offset = self.i64(offset)
        return self.b.add(address, offset)

    def load(self, vtype: ir.Type, address: ir.Value, offset: ir.Value | int = 0, align: int = 1) -> ir.Value:
        pointer = self.b.inttoptr(self.at(address, offset), vtype.as_pointer())
        return self.b.load(pointer, align=align)

    def store(self, value: ir.Value, address: ir.Value, offset: ir.Value | int = 0, align: int = 1) -> None:
        pointer = self.b.inttoptr(self.at(address, offset), value.type.as_pointer())
        self.b.store(value, pointer, align=align)

    def prefetch(self, address: ir.Value, offset: ir.Value | int, nbytes: int) -> None:
        """Ask for the cache lines of `nbytes` from address + offset on; any address will do."""
        byte = I8.as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
        function = self.b.module.globals.get("llvm.prefetch.p0")
        if function is None:
            function = ir.Function(self.b.module, signature, "llvm.prefetch.p0")
        read, keep, data = ir.Constant(I32, 0), ir.Constant(I32, PREFETCH_LOCALITY), ir.Constant(I32, 1)
        for line in range(0, nbytes, 64):
            pointer = self.b.inttoptr(self.at(self.at(address, offset), line), byte)
            self.b.call(function, [pointer, read, keep, data])

    # -- vectors -------------------------------------------------------------------------------------------------
    def splat(self, scalar: ir.Value, n: int) -> ir.Value:
        vtype = ir.VectorType(scalar.type, n)
        one = self.b.insert_element(ir.Constant(vtype, ir.Undefined), scalar, ir.Constant(I32, 0))
        mask = ir.Constant(ir.VectorType(I32, n), [0] * n)
        return self.b.shuffle_vector(one, ir.Constant(vtype, ir.Undefined), mask)

    def take(self, vector: ir.Value, lanes: Sequence[int]) -> ir.Value:
        """The given lanes of one vector."""
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
        return self.b.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

    def call(self, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
        """Call an LLVM intrinsic by its full name."""
        signature = ir.FunctionType(result, [a.type for a in args])
        function = self.b.module.globals.get(name)
        if function is None:
            function = ir.Function(self.b.module, signature, name)
        return self.b.call(function, list(args))

    def suffix(self, value_type: ir.Type) -> str:
        """LLVM's type suffix of an overloaded intrinsic: v16f32, v8i32, f32."""
        if isinstance(value_type, ir.VectorType):
            return f"v{value_type.count}{self.suffix(value_type.element)}"
        if isinstance(value_type, ir.IntType):
            return f"i{value_type.width}"
        return "f16" if isinstance(value_type, ir.HalfType) else "f32"

    def unary(self, name: str, value: ir.Value) -> ir.Value:
        return self.call(f"llvm.{name}.{self.suffix(value.type)}", value.type, [value])

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """a * b + c, fused where the machine can."""
        return self.call(f"llvm.fmuladd.{self.suffix(a.type)}", a.type, [a, b, c])

    def fmax(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The larger; `b` where either is NaN (one instruction on x86, unlike llvm.maxnum)."""
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def reduce(self, kind: str, vector: ir.Value) -> ir.Value:
        """Sum ("fadd", "add") or maximum ("fmax") of all lanes, by halves, always in the same order."""
        n = vector.type.count
        while n > 1:
            n //= 2
            low, high = self.take(vector, range(n)), self.take(vector, range(n, 2 * n))
            if kind == "fadd":
                vector = self.b.fadd(low, high)
            elif kind == "add":
                vector = self.b.add(low, high)
            else:
                vector = self.fmax(low, high)
        return self.b.extract_element(vector, ir.Constant(I32, 0))

    def f32(self, halfs: ir.Value) -> ir.Value:
        return self.b.fpext(halfs, ir.VectorType(F32, halfs.type.count))

    def exp(self, x: ir.Value) -> ir.Value:
        """e**x for x <= 87, relative error below 3e-7; exactly 0 below -87.

        x = n ln 2 + r: a polynomial in r (least largest relative error on |r| <= ln 2 / 2, fitted with numpy), then n
        goes straight into the exponent.  Adding 1.5 * 2**23 rounds to the integer n and leaves it in the low bits.
        """
        lanes = x.type.count

        def const(value: float) -> ir.Constant:
            return self.splat_const(F32, value, lanes)

        small = self.b.fcmp_ordered("<", x, const(-87.0))
        shifted = self.fma(x, const(1.4426950408889634), const(12582912.0))
        whole = self.b.fsub(shifted, const(12582912.0))
        rest = self.fma(whole, const(-0.693359375), x)
        rest = self.fma(whole, const(2.12194440e-4), rest)
        poly = const(0.008297646418213844)
        for c in (0.04191543161869049, 0.16667574644088745, 0.49998894333839417, 0.9999997019767761, 1.0):
            poly = self.fma(poly, rest, const(c))
        integers = ir.VectorType(I32, lanes)
        bits = self.b.shl(self.b.bitcast(shifted, integers), self.splat_const(I32, 23, lanes))
        out = self.b.bitcast(self.b.add(self.b.bitcast(poly, integers), bits), x.type)
        return self.b.select(small, self.zero(F32, lanes), out)


class Loop:
    """`for i in range(start, stop, step)` with loop-carried values, as SSA phis.

    Used as `loop = Loop(e, 0, n, init=[...]); ... loop.close([...])`; `loop.values` are the carried values inside,
    `close` returns them after the loop.
    """

    def __init__(self, e: Emitter, start: ir.Value | int, stop: ir.Value, step: int = 1,
                 init: Sequence[ir.Value] = ()) -> None:
        b = e.b
        self.e, self.step = e, step
        start = e.i64(start) if isinstance(start, int) else start
        before = b.block
        self.head = b.append_basic_block("loop")
        self.body = b.append_basic_block("body")
        self.done = b.append_basic_block("done")
        b.branch(self.head)
        b.position_at_end(self.head)
        self.index = b.phi(I64)
        self.index.add_incoming(start, before)
        self.values = []
        for value in init:
            phi = b.phi(value.type)
            phi.add_incoming(value, before)
            self.values.append(phi)
        b.cbranch(b.icmp_signed("<", self.index, stop), self.body, self.done)
        b.position_at_end(self.body)

    def close(self, values: Sequence[ir.Value] = ()) -> list[ir.Value]:
        b = self.e.b
        self.index.add_incoming(b.add(self.index, self.e.i64(self.step)), b.block)
        for phi, value in zip(self.values, values, strict=True):
            phi.add_incoming(value, b.block)
        b.branch(self.head)
        b.position_at_end(self.done)
        return list(self.values)
