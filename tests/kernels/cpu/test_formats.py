from __future__ import annotations

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quantize

from kernels.contract import KernelError
from kernels.cpu.arena import Arena
from kernels.cpu.pack import pack, unpack_row
from kernels.formats import Dense, Grouped4, Grouped8, narrow, runtime_format
from kernels.weights import WeightTensor
from tests.kernels.cpu.small import stored

ROWS, COLS = 37, 256


def random_blocks(kind: str, rng: np.random.Generator) -> WeightTensor:
    """Random bytes with plausible fp16 scales: every bit pattern of the quants occurs."""
    size, nbytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    raw = rng.integers(0, 256, (ROWS, COLS // size, nbytes), dtype=np.uint8)
    halves = {"Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q5_0": [0], "Q4_K": [0, 2], "Q6_K": [208], "Q5_K": [0, 2]}
    for at in halves[kind]:
        scales = rng.uniform(-0.1, 0.1, raw.shape[:2]).astype(np.float16)
        raw[..., at : at + 2] = scales[..., None].view(np.uint8)
    return WeightTensor(raw.reshape(ROWS, -1), ROWS, COLS, kind)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q4_K", "Q8_0", "Q5_0"])
def test_common_types_are_kept_exactly(kind: str) -> None:
    tensor = random_blocks(kind, np.random.default_rng(1))
    weights = runtime_format(tensor)
    assert isinstance(weights, Grouped4 if kind.startswith("Q4") else Grouped8)
    np.testing.assert_array_equal(weights.dequantize(), tensor.dequantize())


@pytest.mark.parametrize("kind", ["Q5_K", "Q6_K"])
def test_other_types_lose_at_most_half_a_step(kind: str) -> None:
    tensor = random_blocks(kind, np.random.default_rng(2))
    exact = tensor.dequantize().reshape(ROWS, -1, 32)
    ours = runtime_format(tensor).dequantize().reshape(exact.shape)
    step = np.abs(exact).max(axis=2, keepdims=True) / 127
    assert (np.abs(ours - exact) <= 0.5001 * step + 1e-12).all()


def test_scales_become_half_precision_only_without_loss() -> None:
    halves = np.array([[0.5, 0.25]], np.float32)
    assert narrow(halves, halves)[0].dtype == np.float16
    assert narrow(halves, np.array([[1.0001, 1e9]], np.float32))[0].dtype == np.float32


def test_dense_types_stay_as_they_are() -> None:
    values = np.random.default_rng(3).standard_normal((ROWS, COLS)).astype(np.float32)
    assert runtime_format(stored(values, "F32")).dequantize().dtype == np.float32
    half = runtime_format(stored(values, "F16"))
    assert isinstance(half, Dense) and half.values.dtype == np.float16
    raw = quantize(values, GGMLQuantizationType.BF16).view(np.uint8).reshape(ROWS, -1)
    tensor = WeightTensor(raw, ROWS, COLS, "BF16")
    brain = runtime_format(tensor)
    assert isinstance(brain, Dense) and brain.bf16
    np.testing.assert_array_equal(brain.dequantize(), tensor.dequantize())


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q4_K", "Q8_0", "Q6_K"])
def test_a_packed_row_is_the_row(kind: str) -> None:
    tensor = random_blocks(kind, np.random.default_rng(4))
    expected = runtime_format(tensor).dequantize()
    packed = pack(tensor, Arena())
    assert packed.data.nbytes == packed.tiles * packed.tile_bytes and packed.tiles == 3
    for row in range(ROWS):
        np.testing.assert_array_equal(unpack_row(packed, row), expected[row])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_a_packed_dense_row_is_the_row(kind: str) -> None:
    values = np.random.default_rng(5).standard_normal((ROWS, COLS)).astype(np.float32)
    tensor = stored(values, kind)
    packed = pack(tensor, Arena())
    for row in range(ROWS):
        np.testing.assert_array_equal(unpack_row(packed, row), tensor.dequantize()[row])


def test_a_width_that_is_no_multiple_of_32_is_refused() -> None:
    with pytest.raises(KernelError, match="multiple of 32"):
        pack(WeightTensor.dense(np.zeros((4, 48), np.float32)), Arena())


def test_the_arena_hands_out_aligned_memory_that_does_not_overlap() -> None:
    arena = Arena()
    arrays = [arena.take(n) for n in (100, 1, 40 << 20, 64, 5000)]
    for number, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0 and not array[:100].any()
        array[:] = number + 1
    for number, array in enumerate(arrays):
        assert (array == number + 1).all()
