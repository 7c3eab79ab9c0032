"""One row of activations laid out for the grouped GEMVs, so that unpacking a weight costs one mask.

A 32-bit word of packed weights is masked, not shifted: the nibble (or byte) stays where it is in the word and, read
as an integer, is worth 2^(its bit position) too much.  The input it meets is divided by that power of two beforehand,
which is exact.  The inputs of one position of all words lie beside each other:

    unfolded[c * K/4 + i] = x[4 i + c] * 2^-(8 c + 4 ((i // 4) % 2))        fp32, K values, then
    unfolded[K + g]       = sum of x[32 g .. 32 g + 31]                      K/32 values

Worked for 4 bits: input 21 of a group is in the high half of byte 5, that is bits 12 to 15 of its word 1: c = 1,
i = 5, factor 2^-(8 + 4).  In 8 bits it is byte 1 of word 5, bits 8 to 15: the kernel gives back the 2^4.

The kernels that make a row (norm, gate, attention) write this form beside the plain one; `unfold` is for the rest.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two


@triton.jit
def store_unfolded(target, k, value, inside, K: tl.constexpr, BLOCK: tl.constexpr):
    """Store x[k] = value (fp32) of BLOCK consecutive k from a multiple of 32, and the sums of their groups."""
    c = k % 4
    i = k // 4
    bits = c * 8 + (i // 4) % 2 * 4
    # 127 is the exponent of 1.0: the float 2^-bits put together from its bits.
    factor = ((127 - bits) << 23).to(tl.float32, bitcast=True)
    value = tl.where(inside, value, 0.0)
    tl.store(target + c * (K // 4) + i, value * factor, mask=inside)
    sums = tl.sum(tl.reshape(value, [BLOCK // 32, 32]), 1)
    group = tl.min(tl.reshape(k, [BLOCK // 32, 32]), 1) // 32
    tl.store(target + K + group, sums, mask=group < K // 32)


@triton.jit
def unfold_kernel(x, out, K: tl.constexpr, BLOCK: tl.constexpr):
    """Moves K*(e + 4) bytes."""
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = k < K
    store_unfolded(out, k, tl.load(x + k, mask=inside, other=0.0).to(tl.float32), inside, K, BLOCK)


def room(cols: int, device: torch.device) -> torch.Tensor:
    """An unfilled buffer for one unfolded row."""
    return torch.empty(cols + cols // 32, dtype=torch.float32, device=device)


def unfold(x: torch.Tensor) -> torch.Tensor:
    """The unfolded form of a row x [1, K], K a multiple of 32."""
    cols = x.shape[1]
    out = room(cols, x.device)
    block = min(1024, power_of_two(cols, 32))
    launch(unfold_kernel, (triton.cdiv(cols, block),), {"x": x, "out": out}, {"K": cols, "BLOCK": block})
    return out
