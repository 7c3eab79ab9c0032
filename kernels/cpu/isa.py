"""Which instructions this machine has for products of bytes, and how each family forms a dot product of four.

All families give the same integers, so results do not depend on the machine:

=========  ============================================================  ======================
name       4 unsigned x 4 signed bytes summed into one 32-bit lane        lanes per vector
=========  ============================================================  ======================
AVX512     vpdpbusd (VNNI), 512 bits                                      16
AVXVNNI    vpdpbusd, 256 bits                                             8
AVX2       vpmaddubsw, then vpmaddwd by ones                              8
NEON       sdot (both sides signed: a nibble fits)                        4
PLAIN      widening multiplications, whatever LLVM makes of them          4
=========  ============================================================  ======================
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from enum import IntEnum

from llvmlite import binding, ir

from kernels.cpu.vec import I8, I16, I32, Emitter


class Isa(IntEnum):
    """Instruction family, a small integer so that it can key compiled code."""

    PLAIN = 0
    NEON = 1
    AVX2 = 2
    AVXVNNI = 3
    AVX512 = 4

    @property
    def lanes(self) -> int:
        """32-bit lanes of one vector."""
        return {Isa.AVX512: 16, Isa.AVXVNNI: 8, Isa.AVX2: 8}.get(self, 4)

    @property
    def registers(self) -> int:
        """Vector registers to plan with."""
        return {Isa.AVX512: 32, Isa.NEON: 32}.get(self, 16)


def detect() -> Isa:
    """The best family of the machine we run on."""
    has = {name for name, on in binding.get_host_cpu_features().items() if on}
    if {"avx512f", "avx512bw", "avx512vl", "avx512vnni", "f16c"} <= has:
        return Isa.AVX512
    if {"avx2", "fma", "f16c", "avxvnni"} <= has:
        return Isa.AVXVNNI
    if {"avx2", "fma", "f16c"} <= has:
        return Isa.AVX2
    if "dotprod" in has and platform.machine().lower() in ("arm64", "aarch64"):
        return Isa.NEON
    return Isa.PLAIN


def dot_u4(e: Emitter, isa: Isa, nibbles: Sequence[ir.Value], quads: Sequence[ir.Value]) -> ir.Value:
    """Sum over one group of 32: eight vectors of unsigned nibbles [4 * lanes x i8] times eight i32 of 4 signed bytes.

    On plain AVX2 the 16-bit sums stay exact: 16 products of at most 15 x 127 are 30,480 < 32,768.
    """
    lanes = isa.lanes
    if isa is Isa.AVX2:
        half = None
        for w, a in zip(nibbles, quads, strict=True):
            p = e.call("llvm.x86.avx2.pmadd.ub.sw", ir.VectorType(I16, 16), [w, _bytes(e, a, lanes)])
            half = p if half is None else e.b.add(half, p)
        return _widen_pairs(e, half)
    return _chains(e, isa, nibbles, quads, None)


def dot_i8(e: Emitter, isa: Isa, offset_bytes: Sequence[ir.Value], quads: Sequence[ir.Value],
           correction: ir.Value) -> ir.Value:
    """The same for signed 8-bit weights, stored with 128 added.

    `correction` (i32) is -128 times the sum of the 32 activations: families with an unsigned x signed product start
    from it, the others take the 128 off the weights first.
    """
    lanes = isa.lanes
    if isa in (Isa.AVX512, Isa.AVXVNNI):
        return _chains(e, isa, offset_bytes, quads, e.splat(correction, lanes))
    flip = e.splat_const(I8, -128, 4 * lanes)
    signed = [e.b.xor(w, flip) for w in offset_bytes]
    if isa is not Isa.AVX2:
        return _chains(e, isa, signed, quads, None)
    # |w| x (a with w's sign): 2 x 128 x 127 = 32,512 stays inside 16 bits, where 255 x 127 x 2 would saturate.
    total = None
    for w, a in zip(signed, quads, strict=True):
        v32 = ir.VectorType(I8, 32)
        a = _bytes(e, a, lanes)
        size = e.call("llvm.abs.v32i8", v32, [w, ir.Constant(ir.IntType(1), 0)])
        # psign as plain IR: negate where w < 0; w == 0 gives 0 through |w|.
        a = e.b.select(e.b.icmp_signed("<", w, e.zero(I8, 32)), e.b.sub(e.zero(I8, 32), a), a)
        p = _widen_pairs(e, e.call("llvm.x86.avx2.pmadd.ub.sw", ir.VectorType(I16, 16), [size, a]))
        total = p if total is None else e.b.add(total, p)
    return total


def _bytes(e: Emitter, quad: ir.Value, lanes: int) -> ir.Value:
    return e.b.bitcast(e.splat(quad, lanes), ir.VectorType(I8, 4 * lanes))


def _widen_pairs(e: Emitter, halfs: ir.Value) -> ir.Value:
    """Sum neighbouring 16-bit lanes into 32-bit ones."""
    ones = e.splat_const(I16, 1, 16)
    return e.call("llvm.x86.avx2.pmadd.wd", ir.VectorType(I32, 8), [halfs, ones])


def _chains(e: Emitter, isa: Isa, weights: Sequence[ir.Value], quads: Sequence[ir.Value],
            start: ir.Value | None) -> ir.Value:
    """Two interleaved chains of four-byte dot products, so that their latency overlaps."""
    sums = [start if start is not None else e.zero(I32, isa.lanes), e.zero(I32, isa.lanes)]
    for i, (w, a) in enumerate(zip(weights, quads, strict=True)):
        sums[i % 2] = _dot4(e, isa, sums[i % 2], w, a)
    return e.b.add(*sums)


def _dot4(e: Emitter, isa: Isa, total: ir.Value, w: ir.Value, quad: ir.Value) -> ir.Value:
    lanes = isa.lanes
    a = _bytes(e, quad, lanes)
    if isa in (Isa.AVX512, Isa.AVXVNNI):
        bits = 512 if isa is Isa.AVX512 else 256
        signature = _vpdpbusd_takes_bytes()
        args = [total, w, a] if signature else [total, e.b.bitcast(w, total.type), e.b.bitcast(a, total.type)]
        return e.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total.type, args)
    if isa is Isa.NEON:
        return e.call("llvm.aarch64.neon.sdot.v4i32.v16i8", total.type, [total, w, a])
    wide = ir.VectorType(I32, lanes)
    for k in range(4):
        at = [4 * lane + k for lane in range(lanes)]
        product = e.b.mul(e.b.sext(e.take(w, at), wide), e.b.sext(e.take(a, at), wide))
        total = e.b.add(total, product)
    return total


def _vpdpbusd_takes_bytes() -> bool:
    """LLVM 22 changed the operands of the VNNI intrinsics from vectors of i32 to vectors of i8."""
    return binding.llvm_version_info[0] >= 22
