"""The plain torch back end: one step as the contract draws it, and the exact variant's promise."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.contract import CacheGroupSpec, ForwardBatch, KernelError
from kernels.reference import BACKEND, EXACT
from tests.engine.tiny import fresh_logits, tiny_file

IDS = [int(i) for i in np.random.default_rng(3).integers(4, 60, 23)]


def forward(model, cache, ids, start, tables, wanted=(-1,)):
    """Append ids[start:] of one sequence; logits behind the wanted rows."""
    n = len(ids) - start
    batch = ForwardBatch(
        token_ids=np.array(ids[start:], np.int32),
        positions=np.arange(start, len(ids), dtype=np.int32),
        seq_starts=np.array([0, n], np.int32),
        context_lens=np.array([len(ids)], np.int32),
        block_tables=tuple(np.array([t], np.int32) for t in tables),
        logit_rows=np.array([w % n for w in wanted], np.int32),
    )
    return model.forward(batch, cache).copy()


@pytest.mark.parametrize("windows", [(None, None), (5, 5), (5, None)])
@pytest.mark.parametrize("size", [1, 4, 7, 32])
def test_chunks_and_scattered_pages_change_nothing(windows, size):
    file = tiny_file(windows)
    kinds = sorted(set(windows), key=lambda w: (w is None, w))
    blocks = -(-len(IDS) // size)
    groups = tuple(
        CacheGroupSpec(tuple(i for i, w in enumerate(windows) if w == kind), blocks + 3, size, kind) for kind in kinds
    )
    table = np.random.default_rng(size).permutation(blocks + 3)[:blocks].tolist()
    for backend, tolerance in ((EXACT, 0.0), (BACKEND, 2e-5)):
        model = backend.load(file.shape, file.weights)
        cache = model.make_cache(groups, "float32")
        for pages in cache.pages:
            pages.fill_(float("nan"))  # whatever is read without having been written shows
        cuts = [0, 1, 6, 7, 15, len(IDS)]
        for start, end in zip(cuts, cuts[1:], strict=False):
            row = forward(model, cache, IDS[:end], start, [table] * len(groups))[0]
            expected = fresh_logits(file, IDS[:end])
            assert np.abs(row - expected).max() <= tolerance


def test_pages_behind_the_window_may_be_absent():
    file = tiny_file((5, 5))
    model = EXACT.load(file.shape, file.weights)
    cache = model.make_cache((CacheGroupSpec((0, 1), 8, 4, 5),), "float32")
    forward(model, cache, IDS[:20], 0, [[0, 1, 2, 3, 4]])
    row = forward(model, cache, IDS[:21], 20, [[-1, -1, -1, -1, 4, 5]])  # 16..19 are page 4, seen are 16..20
    assert np.array_equal(row[0], fresh_logits(file, IDS[:21]))


def test_copy_export_and_import_move_bits():
    file = tiny_file()
    model = EXACT.load(file.shape, file.weights)
    cache = model.make_cache((CacheGroupSpec((0, 1), 4, 4),), "float16")
    forward(model, cache, IDS[:4], 0, [[0]])
    cache.copy_positions(0, 0, 1, 3)
    for a, b in zip(cache.export_page(0, 0, 3), cache.export_page(0, 1, 3), strict=True):
        assert np.array_equal(a, b) and a.shape == (2, 3, 1, 8)
    cache.import_page(0, 2, cache.export_page(0, 0, 4))
    pages = zip(cache.export_page(0, 0, 4), cache.export_page(0, 2, 4), strict=True)
    assert all(np.array_equal(a, b) for a, b in pages)
    assert not cache.export_page(0, 3, 4)[0].any()


def test_an_unknown_page_type_is_refused():
    file = tiny_file()
    with pytest.raises(KernelError, match="float16"):
        BACKEND.load(file.shape, file.weights).make_cache((CacheGroupSpec((0, 1), 4, 4),), "int8")
