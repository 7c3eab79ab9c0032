"""The matrix kernels of every instruction family that this machine can run."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import binding

from kernels.cpu import jit
from kernels.cpu.arena import Arena
from kernels.cpu.gemm import Format
from kernels.cpu.isa import Isa, detect
from kernels.cpu.pack import pack
from kernels.formats import runtime_format
from tests.kernels.cpu.small import stored

HAS = {name for name, on in binding.get_host_cpu_features().items() if on}
FAMILIES = [
    isa
    for isa, needs in {
        Isa.PLAIN: set(),
        Isa.AVX2: {"avx2"},
        Isa.AVXVNNI: {"avx512vnni", "avx512vl"},
        Isa.AVX512: {"avx512vnni", "avx512f"},
        Isa.NEON: {"dotprod"},
    }.items()
    if needs <= HAS
]
KINDS = {
    Format.Q4H: "Q4_1", Format.Q4F: "Q4_K", Format.Q8H: "Q8_0", Format.Q8F: "Q6_K", Format.BF16: "BF16",
    Format.F16: "F16", Format.F32: "F32",
}


def run_tiles(isa: Isa, packed, x: np.ndarray, quants: np.ndarray, meta: np.ndarray) -> np.ndarray:
    """All tiles of a matrix times all rows, through the compiled kernel; the buffer starts as NaN."""
    import ctypes

    address = jit.library(isa).address("tile", int(packed.format))
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)(address)
    out = np.full((len(x), packed.tiles * 16), np.nan, np.float32)
    for tile in range(packed.tiles):
        kernel(
            packed.data.ctypes.data + tile * packed.tile_bytes, packed.groups, len(x), quants.ctypes.data,
            meta.ctypes.data, x.ctypes.data, out.ctypes.data + 64 * tile, out.strides[0],
        )
    return out


def activations(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random int8 groups with extreme members, and their float values."""
    rng = np.random.default_rng(6)
    quants = rng.integers(-127, 128, (rows, cols), dtype=np.int8)
    quants[0], quants[-1, ::2] = 127, -127
    scales = rng.uniform(0.01, 0.02, (rows, cols // 32)).astype(np.float32)
    sums = quants.reshape(rows, -1, 32).sum(axis=2, dtype=np.int32)
    meta = np.stack([scales, scales * sums.astype(np.float32), (-128 * sums).view(np.float32)], axis=1)
    values = quants.astype(np.float32) * np.repeat(scales, 32, axis=1)
    return values, quants, np.ascontiguousarray(meta), scales


def matrix_of(fmt: Format, rows: int, cols: int):
    rng = np.random.default_rng(7)
    if fmt in (Format.Q4F, Format.Q8F):
        from tests.kernels.cpu.test_formats import random_blocks

        return random_blocks(KINDS[fmt], rng)
    values = rng.standard_normal((rows, cols)).astype(np.float32)
    values[0], values[1] = 5.0, -5.0
    return stored(values, KINDS[fmt])


@pytest.mark.parametrize("isa", FAMILIES, ids=lambda isa: isa.name)
@pytest.mark.parametrize("fmt", list(Format), ids=lambda fmt: fmt.name)
def test_a_product_is_right_for_any_number_of_rows(fmt: Format, isa: Isa) -> None:
    tensor = matrix_of(fmt, 37, 256)
    packed = pack(tensor, Arena())
    assert packed.format is fmt
    values, quants, meta, _ = activations(15, 256)
    expected = values @ runtime_format(tensor).dequantize().T
    out = run_tiles(isa, packed, values, quants, meta)
    np.testing.assert_allclose(out[:, :37], expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
    assert not np.isnan(out).any(), "padded outputs are written too"
    # Alone, in pairs or in any other company a row gives the same bits.
    for first, count in ((0, 1), (14, 1), (3, 2), (2, 7)):
        rows = slice(first, first + count)
        alone = run_tiles(isa, packed, *(np.ascontiguousarray(a[rows]) for a in (values, quants, meta)))
        np.testing.assert_array_equal(alone, out[rows])


def test_the_machine_has_a_family() -> None:
    assert detect() in FAMILIES
