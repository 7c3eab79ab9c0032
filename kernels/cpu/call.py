"""Calls through addresses, atomics and waiting, for compiled code."""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types

from kernels.cpu.vec import I32, I64, intrinsic

_VOID = ir.VoidType()


def _call(n: int):
    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.FunctionType(_VOID, [I64] * n).as_pointer())
        builder.call(pointer, list(args[1:]))
        return context.get_dummy_value()

    return types.void(*[types.int64] * (n + 1)), codegen


@intrinsic
def call6(typingctx, function, a, b, c, d, e, f):
    """Call a phase by address."""
    return _call(6)


@intrinsic
def call8(typingctx, function, a, b, c, d, e, f, g, h):
    """Call a kernel by address."""
    return _call(8)


@intrinsic
def call9(typingctx, function, a, b, c, d, e, f, g, h, i):
    """Call a kernel of nine arguments by address."""
    return _call(9)


@intrinsic
def atomic_load(typingctx, address):
    """The 64-bit integer at an address, with acquire order."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def atomic_add(typingctx, address, value):
    """Add to the 64-bit integer at an address; the value before."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def atomic_swap_if(typingctx, address, expected, new):
    """Replace the integer at an address if it is `expected`; whether it was."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        pair = builder.cmpxchg(pointer, args[1], args[2], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(pair, 1), I64)

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def relax(typingctx):
    """Tell the core that this is a waiting loop."""
    x86 = platform.machine().lower() in ("x86_64", "amd64", "i686")

    def codegen(context, builder, signature, args):
        if x86:
            name, values = "llvm.x86.sse2.pause", []
        elif platform.machine().lower() in ("arm64", "aarch64"):
            name, values = "llvm.aarch64.hint", [ir.Constant(I32, 1)]
        else:
            return context.get_dummy_value()
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(_VOID, [v.type for v in values]), name)
        builder.call(function, values)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def sleep_microseconds(typingctx, n):
    """Give the core away for a while (usleep of the C library)."""

    def codegen(context, builder, signature, args):
        function = builder.module.globals.get("usleep")
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(I32, [I32]), "usleep")
        builder.call(function, [builder.trunc(args[0], I32)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
