"""How attention is divided: every row sees each of its chunks once, and only rows on the same pages share."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cpu import plan


def divide(starts: list[int], positions: list[int], table: list[list[int]], page: int, window: int = 0,
           share: bool = True, split_rows: int = 8, strip_rows: int = 4):
    """The plan as Python lists: sets as (chunk, rows), strips, and the arrays about rows."""
    n, length = len(positions), plan.chunk_length(page)
    chunks = (max(positions) // length + 1) * len(starts)
    sets, strips = np.zeros((chunks, 4), np.int32), np.zeros((n, 2), np.int32)
    set_rows = np.full(n * chunks, -1, np.int32)
    base, first, last = (np.zeros(n, np.int32) for _ in range(3))
    n_sets, n_strips, n_parts = plan.build(
        np.array(starts), np.array(positions), np.array(table), page, window, length, split_rows, strip_rows, share,
        sets, set_rows, strips, base, first, last,
    )
    listed = [(int(c), [int(r) for r in set_rows[at : at + m]]) for c, at, m, _ in sets[:n_sets]]
    return listed, [tuple(map(int, s)) for s in strips[:n_strips]], n_parts, base, first, last


@pytest.mark.parametrize(("page", "length", "slots"), [
    (16, 128, 128), (256, 128, 128), (32, 128, 128), (24, 120, 160), (5, 125, 400), (1, 128, 2048), (200, 200, 208),
])  # fmt: skip
def test_chunks_fit_pages(page: int, length: int, slots: int) -> None:
    assert plan.chunk_length(page) == length and plan.chunk_slots(page) == slots
    assert page % length == 0 or length % page == 0


def test_forks_share_the_chunks_whose_pages_they_share() -> None:
    """Page 64, chunk 128: three forks at position 300 share pages 0..3, then own one each; a stranger shares none."""
    table = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 4, 7], [11, 12, 13, 14, 15]]
    sets, strips, parts, base, *_ = divide([0, 1, 2, 3, 4], [300, 300, 300, 300], table, 64)
    assert sets == [(0, [0, 1, 2]), (0, [3]), (1, [0, 1, 2]), (1, [3]), (2, [0]), (2, [1]), (2, [2]), (2, [3])]
    assert strips == [] and parts == 12 and list(base) == [0, 3, 6, 9]
    alone, *_ = divide([0, 1, 2, 3, 4], [300] * 4, table, 64, share=False)
    assert len(alone) == 12 and all(len(rows) == 1 for _, rows in alone)


def test_windowed_layers_share_too_and_never_look_behind_their_window() -> None:
    """Window 100 at position 300: positions 201..300, chunks 1 and 2; page 0 is absent."""
    table = [[-1, -1, 3, 4, 5], [-1, -1, 3, 4, 6]]
    sets, *_ = divide([0, 1, 2], [300, 300], table, 64, window=100)
    assert sets == [(1, [0, 1]), (2, [0]), (2, [1])]


def test_long_appends_go_in_strips() -> None:
    sets, strips, parts, base, *_ = divide([0, 10, 11], [*range(10), 5], [[1], [2]], 64)
    assert strips == [(0, 4), (4, 4), (8, 2)] and sets == [(0, [10])] and parts == 1
    assert list(base) == [-1] * 10 + [0]


def test_any_batch_is_covered_exactly_once() -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        page = int(rng.choice([16, 64, 128]))
        window = int(rng.choice([0, 0, 50, 200]))
        starts, positions, table = [0], list[int](), list[list[int]]()
        width = 800 // page + 1
        for _ in range(int(rng.integers(1, 6))):
            n, first = int(rng.integers(1, 13)), int(rng.integers(0, 700))
            positions += range(first, first + n)
            starts.append(len(positions))
            row = rng.integers(0, 3, width) if rng.random() < 0.5 else np.arange(width)
            table.append([int(p) for p in row])
        sets, strips, parts, base, low, high = divide(starts, positions, table, page, window)
        seen = sorted((row, chunk) for chunk, rows in sets for row in rows)
        in_strips = {row for first, n in strips for row in range(first, first + n)}
        wanted = [
            (row, chunk) for row in range(len(positions)) if row not in in_strips
            for chunk in range(low[row], high[row] + 1)
        ]  # fmt: skip
        assert seen == wanted and parts == len(wanted)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        length = plan.chunk_length(page)
        for chunk, rows in sets:
            blocks = slice(chunk * length // page, ((chunk + 1) * length - 1) // page + 1)
            assert len({tuple(table[owner[row]][blocks]) for row in rows}) == 1
        for row, p in enumerate(positions):
            assert low[row] == (max(0, p - window + 1) if window else 0) // length and high[row] == p // length
