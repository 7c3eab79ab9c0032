"""The CPU model against the torch reference, and against itself under every way of cutting the work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kernels
from kernels.contract import KernelError, ModelShape
from kernels.cpu import BACKEND
from kernels.cpu.model import CpuModel
from tests.kernels.cpu.small import SHAPES, Part, cache_groups, make_batch, weights_for

N = 61
TOKENS = [int(t) for t in np.random.default_rng(8).integers(0, 200, N)]
ALL_PAGES = list(range(2, 66))


@pytest.fixture(scope="module", params=list(SHAPES))
def shape(request) -> ModelShape:
    return SHAPES[request.param]


@pytest.fixture(scope="module")
def model(shape: ModelShape) -> CpuModel:
    return BACKEND.load(shape, weights_for(shape))


def close_to_reference(ours: np.ndarray, reference: np.ndarray) -> None:
    """Within what int8 activations cost on a random model."""
    assert ours.shape == reference.shape and np.isfinite(ours).all()
    error = np.sqrt(np.mean((ours - reference) ** 2)) / reference.std()
    assert error < 0.03, f"relative error {error:.4f}"


def whole(model: CpuModel, page_size: int = 16, dtype: str = "float16") -> np.ndarray:
    """Logits of every position, computed in one forward."""
    groups = cache_groups(model.shape, 70, page_size)
    cache = model.make_cache(groups, dtype)
    return model.forward(make_batch([Part(TOKENS, 0, ALL_PAGES, "all")], groups), cache).copy()


@pytest.mark.parametrize("page_size", [16, 5, 1, 24, 256])
def test_logits_agree_with_the_reference(model: CpuModel, shape: ModelShape, page_size: int) -> None:
    reference = kernels.pick("reference").load(shape, weights_for(shape))
    groups = cache_groups(shape, 70, page_size)
    batch = make_batch([Part(TOKENS, 0, ALL_PAGES, "all")], groups)
    expected = reference.forward(batch, reference.make_cache(groups, "float32"))
    for dtype in ("float16", "float32"):
        close_to_reference(whole(model, page_size, dtype), expected)
    error = np.sqrt(np.mean((whole(model, page_size, "int8") - expected) ** 2)) / expected.std()
    assert error < 0.05


def test_with_float_weights_the_reference_is_met_closely(shape: ModelShape) -> None:
    """Without int8 rounding only the order of additions differs: the architecture is the same."""
    weights = weights_for(shape, "F32")
    reference = kernels.pick("reference").load(shape, weights)
    groups = cache_groups(shape, 70, 16)
    batch = make_batch([Part(TOKENS, 0, ALL_PAGES, "all")], groups)
    expected = reference.forward(batch, reference.make_cache(groups, "float32"))
    ours = whole(BACKEND.load(shape, weights), dtype="float32")
    np.testing.assert_allclose(ours, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("page_size", [16, 5])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_chunking_changes_no_bit(model: CpuModel, page_size: int, dtype: str) -> None:
    """One by one, in short appends, in strips: the same bits, with pages absent behind a window."""
    expected = whole(model, page_size, dtype)
    groups = cache_groups(model.shape, 70, page_size)
    for sizes in ([1] * N, [9, 1, 1, 30, 8, 12], [2, 59], [8] * 7 + [5]):
        cache = model.make_cache(groups, dtype)
        start = 0
        for size in sizes:
            part = Part(TOKENS[start : start + size], start, ALL_PAGES, "all")
            out = model.forward(make_batch([part], groups), cache)
            np.testing.assert_array_equal(out, expected[start : start + size])
            start += size


def test_company_changes_no_bit(model: CpuModel) -> None:
    """Forks of a prefix, a stranger and a long append in one step give what each gives alone."""
    groups = cache_groups(model.shape, 200, 16)
    cache = model.make_cache(groups)
    stranger = [(t * 7 + 3) % 200 for t in TOKENS]
    prefix = make_batch([Part(TOKENS[:48], 0, [0, 1, 2]), Part(stranger[:20], 0, [10, 11])], groups)
    model.forward(prefix, cache)
    parts = [
        Part(TOKENS[48:49], 48, [0, 1, 2, 3], "all"),
        Part(TOKENS[50:53], 48, [0, 1, 2, 4], "all"),
        Part(stranger[20:50], 20, [10, 11, 12, 13], "all"),
        Part(TOKENS[48:54], 48, [0, 1, 2, 5], "all"),
    ]
    together = model.forward(make_batch(parts, groups), cache).copy()
    at = 0
    for number, part in enumerate(parts):
        own = replace(part, pages=part.pages[:-1] + [100 + number])
        if part.start == 20:
            # Its last page but one is written too: give it pages of its own.
            own = replace(part, pages=[10, 110, 111, 112])
            for group in range(len(groups)):
                cache.copy_positions(group, 11, 110, 4)
        alone = model.forward(make_batch([own], groups), cache)
        np.testing.assert_array_equal(alone, together[at : at + len(part.tokens)])
        at += len(part.tokens)


def test_threads_change_no_bit(shape: ModelShape, model: CpuModel) -> None:
    expected = whole(model)
    for threads in (2, 3):
        np.testing.assert_array_equal(whole(BACKEND.load(shape, weights_for(shape), threads=threads)), expected)


def test_stale_and_poisoned_pages_are_never_seen(model: CpuModel) -> None:
    """Every slot that no row wrote holds NaN."""
    expected = whole(model)
    groups = cache_groups(model.shape, 70, 16)
    cache = model.make_cache(groups)
    for arrays in (cache.keys, cache.values):
        for array in arrays:
            array[...] = np.nan
    out = model.forward(make_batch([Part(TOKENS[:50], 0, ALL_PAGES, "all")], groups), cache)
    np.testing.assert_array_equal(out, expected[:50])
    out = model.forward(make_batch([Part(TOKENS[50:51], 50, ALL_PAGES, "all")], groups), cache)
    np.testing.assert_array_equal(out, expected[50:51])


def test_pages_survive_export_import_and_copy(model: CpuModel) -> None:
    for dtype in ("float16", "int8"):
        groups = cache_groups(model.shape, 70, 20)
        cache, other = model.make_cache(groups, dtype), model.make_cache(groups, dtype)
        expected = model.forward(make_batch([Part(TOKENS[:45], 0, [1, 2, 3, 4])], groups), cache).copy()
        for g, spec in enumerate(groups):
            for page, n in ((1, 20), (2, 20), (3, 4)):
                arrays = cache.export_page(g, page, n)
                d = model.shape.head_dim
                assert arrays[0].shape == arrays[1].shape == (len(spec.layers), n, model.shape.n_kv_heads, d)
                other.import_page(g, page, arrays)
                for again, once in zip(other.export_page(g, page, n), arrays, strict=True):
                    np.testing.assert_array_equal(again, once)
                cache.copy_positions(g, page, page + 30, n)
        last = Part(TOKENS[44:45], 44, [1, 2, 3, 4])
        np.testing.assert_array_equal(model.forward(make_batch([last], groups), other), expected)
        last.pages = [31, 32, 33]
        np.testing.assert_array_equal(model.forward(make_batch([last], groups), cache), expected)


def test_no_logits_wanted_is_an_empty_answer(model: CpuModel) -> None:
    groups = cache_groups(model.shape, 70, 16)
    batch = make_batch([Part(TOKENS[:5], 0, ALL_PAGES)], groups)
    batch.logit_rows = np.zeros(0, np.int32)
    assert model.forward(batch, model.make_cache(groups)).shape == (0, 200)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "F32", "F16", "BF16"])
def test_every_weight_format_runs(kind: str) -> None:
    shape = SHAPES["llama"]
    weights = weights_for(shape, kind)
    reference = kernels.pick("reference").load(shape, weights)
    groups = cache_groups(shape, 70, 16)
    batch = make_batch([Part(TOKENS, 0, ALL_PAGES, "all")], groups)
    expected = reference.forward(batch, reference.make_cache(groups, "float32"))
    ours = whole(BACKEND.load(shape, weights), dtype="float32")
    close_to_reference(ours, expected)
    if kind in ("F32", "F16", "BF16"):
        np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(expected).max())


def test_mistakes_are_refused_before_any_address_is_used(model: CpuModel) -> None:
    groups = cache_groups(model.shape, 70, 16)
    cache = model.make_cache(groups)
    with pytest.raises(KernelError, match="vocabulary"):
        model.forward(make_batch([Part([200], 0, [1])], groups), cache)
    with pytest.raises(KernelError, match="block table"):
        model.forward(make_batch([Part([1], 16, [1])], groups), cache)
    with pytest.raises(KernelError, match="block table"):
        model.forward(make_batch([Part([1], 0, [70])], groups), cache)
    with pytest.raises(KernelError, match="float16"):
        model.make_cache(groups, "float8")
    with pytest.raises(KernelError, match="every layer"):
        model.make_cache((replace(groups[0], layers=(0,)),))
    with pytest.raises(KernelError, match="threads"):
        BACKEND.load(model.shape, weights_for(model.shape), threads=0)
