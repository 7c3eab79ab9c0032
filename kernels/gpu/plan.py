"""Who reads which stretch of positions: the host's part of attention, in numpy, once a step for each cache group.

Rows of one sequence and rows of sequences that hold the same pages are treated alike: within each split, rows whose
block tables name the same pages there form a set, and a set is cut into items.  A sequence with many rows (prefill)
gets items that walk over all its positions instead, so that no partial result goes through memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.contract import ForwardBatch

NARROW = 16
"""Tile rows of a decode item: the least a tensor core takes."""


@dataclass(frozen=True)
class PlanShape:
    """Fixed numbers of one cache group.  `position_bytes`: keys and values of one position in one layer."""

    page_size: int
    window: int | None
    split: int
    padded_share: int
    position_bytes: int
    step: int
    """Positions of one loop step: items begin at its multiples, so that every row meets the same tiles."""
    wide: int = 64
    """Tile rows of an item over many rows."""
    prefill_rows: int = 64
    """Sequences with more rows than this are walked over instead of split."""
    launch_bytes: int = 4 << 20
    """What could be read in the time of one more launch: sharing must save more than this in one layer."""
    share: bool = True
    """False gives every sequence its own items (to measure what sharing brings)."""

    @property
    def tile(self) -> int:
        """The wide tile holds at least one row with all its heads."""
        return max(self.wide, self.padded_share)

    @property
    def narrow_tile(self) -> int:
        return max(NARROW, self.padded_share)


@dataclass(frozen=True)
class HostItems:
    """`heads` [n, 3] (table row, first position, end), `rows` [n, rows of a tile], -1 = none; int32."""

    heads: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class GroupPlan:
    """One step's work in one cache group.  `merged_rows`: rows whose splits are to be combined."""

    narrow: HostItems
    wide: HostItems
    walk: HostItems
    merged_rows: np.ndarray
    max_splits: int
    bytes_read: int
    """Keys and values that the items read in one layer."""


def plan_group(batch: ForwardBatch, group: int, shape: PlanShape) -> GroupPlan:
    """Cut the attention of one step in one cache group into items."""
    positions = np.asarray(batch.positions, np.int64)
    counts = np.diff(batch.seq_starts)
    row_seq = np.repeat(np.arange(len(counts)), counts)
    low = np.zeros_like(positions) if shape.window is None else np.maximum(positions - shape.window + 1, 0)
    walked = counts > shape.prefill_rows
    rows = np.flatnonzero(~walked[row_seq])
    narrow, wide = _split_items(batch.block_tables[group], rows, row_seq, positions, low, shape)
    walk = _walk_items(np.flatnonzero(walked), batch.seq_starts, positions, low, shape)
    spans = positions[rows] // shape.split - low[rows] // shape.split + 1
    read = sum(int((items.heads[:, 2] - items.heads[:, 1]).sum()) for items in (narrow, wide, walk))
    return GroupPlan(narrow, wide, walk, rows.astype(np.int32), int(spans.max(initial=1)), read * shape.position_bytes)


def _split_items(
    table: np.ndarray,
    rows: np.ndarray,
    row_seq: np.ndarray,
    positions: np.ndarray,
    low: np.ndarray,
    shape: PlanShape,
) -> tuple[HostItems, HostItems]:
    """Items of the rows that are merged afterwards: (row, split) pairs, sets of equal pages, pieces of a tile."""
    narrow_rows, wide_rows = shape.narrow_tile // shape.padded_share, shape.tile // shape.padded_share
    first, last = low[rows] // shape.split, positions[rows] // shape.split
    spans = last - first + 1
    pair_row = np.repeat(rows, spans)
    starts = np.cumsum(spans) - spans
    pair_split = np.arange(len(pair_row)) - np.repeat(starts, spans) + np.repeat(first, spans)
    sets = _same_pages(table, row_seq[pair_row], pair_split, shape)
    order = np.argsort(sets, kind="stable")
    sizes = np.bincount(sets) if len(sets) else np.zeros(0, np.int64)
    passes = -(-sizes // narrow_rows) - -(-sizes // wide_rows)
    saved = int(passes.sum()) * shape.split * shape.position_bytes
    wide_set = (sizes > narrow_rows) & (saved > shape.launch_bytes)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    in_wide = np.repeat(wide_set, sizes)

    def build(chosen: np.ndarray, width: int) -> HostItems:
        members, place = order[chosen], rank[chosen] % width
        starts = np.flatnonzero(place == 0)
        listed = np.full((len(starts), width), -1, np.int32)
        heads = np.empty((len(starts), 3), np.int32)
        if len(starts):
            listed[np.cumsum(place == 0) - 1, place] = pair_row[members]
            split = pair_split[members[starts]]
            least = np.minimum.reduceat(low[pair_row[members]], starts) // shape.step * shape.step
            heads[:, 0] = row_seq[pair_row[members[starts]]]
            heads[:, 1] = np.maximum(split * shape.split, least)
            furthest = np.maximum.reduceat(positions[pair_row[members]], starts)
            heads[:, 2] = np.minimum((split + 1) * shape.split, furthest + 1)
        return HostItems(heads, listed)

    return build(~in_wide, narrow_rows), build(in_wide, wide_rows)


def _same_pages(table: np.ndarray, seqs: np.ndarray, splits: np.ndarray, shape: PlanShape) -> np.ndarray:
    """A number for each (sequence, split) pair, equal where the split is equal and its pages are."""
    n_splits = int(splits.max(initial=0)) + 1
    own = seqs * n_splits + splits
    if not shape.share or len(table) == 1 or max(shape.split, shape.page_size) % min(shape.split, shape.page_size):
        return np.unique(own, return_inverse=True)[1]
    distinct, back = np.unique(own, return_inverse=True)
    seq, split = distinct // n_splits, distinct % n_splits
    per = max(1, shape.split // shape.page_size)
    first = split * shape.split // shape.page_size
    columns = np.minimum(first[:, None] + np.arange(per), table.shape[1] - 1)
    named = np.column_stack(
        (split, np.where(first[:, None] + np.arange(per) < table.shape[1], table[seq[:, None], columns], -1))
    )
    return np.unique(named, axis=0, return_inverse=True)[1].reshape(-1)[back]


def _walk_items(
    seqs: np.ndarray, seq_starts: np.ndarray, positions: np.ndarray, low: np.ndarray, shape: PlanShape
) -> HostItems:
    """Items of a prefill: each takes a tile of rows over all they see; the longest first, they end the last."""
    width = shape.tile // shape.padded_share
    heads, listed = [], []
    for seq in seqs:
        for start in range(int(seq_starts[seq]), int(seq_starts[seq + 1]), width):
            stop = min(start + width, int(seq_starts[seq + 1]))
            heads.append((seq, low[start] // shape.step * shape.step, positions[stop - 1] + 1))
            listed.append(np.concatenate((np.arange(start, stop), np.full(width - (stop - start), -1))))
    order = np.argsort([first - end for _, first, end in heads], kind="stable")
    return HostItems(
        np.array(heads, np.int32).reshape(-1, 3)[order], np.array(listed, np.int32).reshape(-1, width)[order]
    )
