"""Paged attention, interpreted: splits, windows, rings, shared prefixes, page sizes, stored types, padding."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.gpu.checks import check_attention

F16, BF16 = torch.float16, torch.bfloat16


@pytest.mark.parametrize(
    ("counts", "contexts"),
    (([1], [1]), ([1], [16]), ([1], [17]), ([1, 1], [40, 3]), ([1, 1, 1], [16, 32, 33])),
    ids=str,
)
def test_decode_at_every_kind_of_edge(counts: list[int], contexts: list[int]) -> None:
    """Empty and full pages, one split and several, ragged lengths."""
    check_attention("cpu", counts, contexts)


@pytest.mark.parametrize("page", (1, 4, 16, 32, 6))
def test_page_sizes(page: int) -> None:
    """Smaller than a split, equal, larger, and one that does not divide it."""
    check_attention("cpu", [1, 2], [39, 20], page=page)


@pytest.mark.parametrize("window", (1, 4, 13, 16, 64))
def test_windows_never_touch_the_pages_before_them(window: int) -> None:
    """The pages before the window are absent, as in a ring the engine has gone round."""
    check_attention("cpu", [1, 3], [50, 21], window=window)


@pytest.mark.parametrize(("heads", "kv_heads", "dim"), ((3, 3, 16), (9, 3, 24), (8, 1, 32), (20, 1, 16), (2, 1, 80)))
def test_head_shapes(heads: int, kv_heads: int, dim: int) -> None:
    check_attention("cpu", [1, 2], [20, 9], heads=heads, kv_heads=kv_heads, dim=dim)


@pytest.mark.parametrize(
    ("dtype", "quant"), ((F16, 0), (BF16, 0), (F16, 1), (F16, 2)), ids=("fp16", "bf16", "int8", "fp8")
)
def test_stored_types(dtype: torch.dtype, quant: int) -> None:
    check_attention("cpu", [1, 2], [21, 18], dtype=dtype, quant=quant, window=17)


def test_short_appends() -> None:
    check_attention("cpu", [2, 20], [30, 20])
    check_attention("cpu", [9], [30], window=7, page=8)


def test_prefill_walks_beside_decode() -> None:
    check_attention("cpu", [20, 1, 2], [20, 33, 18], prefill_rows=8)
    check_attention("cpu", [20, 1], [45, 33], prefill_rows=8, window=11)


def test_padding_of_a_graph_changes_nothing() -> None:
    plain = check_attention("cpu", [1, 1, 1], [40, 17, 5])
    padded = check_attention("cpu", [1, 1, 1], [40, 17, 5], padded=True)
    assert torch.equal(plain, padded)


@pytest.mark.parametrize("window", (None, 27))
@pytest.mark.parametrize("launch_bytes", (0, 1 << 40))
def test_a_shared_prefix_gives_the_bits_of_separate_reads(window: int | None, launch_bytes: int) -> None:
    """Forks with eight heads on a kv head: one wide item, or narrow ones, against every fork by itself."""
    forks = dict(shared=32, window=window, heads=8, kv_heads=1, dim=16)
    counts, contexts = [1, 2, 1], [37, 40, 45]
    together = check_attention("cpu", counts, contexts, launch_bytes=launch_bytes, **forks)
    apart = check_attention("cpu", counts, contexts, launch_bytes=-1, **forks)
    assert torch.equal(together, apart)


@pytest.mark.slow
@pytest.mark.parametrize("page", (1, 8, 16, 64))
@pytest.mark.parametrize("window", (None, 5, 31, 100))
@pytest.mark.parametrize("quant", (0, 1, 2))
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), ((4, 2, 16), (9, 3, 64), (8, 4, 40)))
def test_the_large_table(page: int, window: int | None, quant: int, heads: int, kv_heads: int, dim: int) -> None:
    check_attention(
        "cpu", [1, 5, 1, 18], [65, 70, 64, 40], page=page, window=window, quant=quant, dtype=F16, heads=heads,
        kv_heads=kv_heads, dim=dim, split=32, prefill_rows=12, shared=64 if page <= 64 and window is None else 0,
    )  # fmt: skip
