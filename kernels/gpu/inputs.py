"""All that the host tells the card in one step: a handful of int32 arrays in one buffer, one copy.

A decode step inside a CUDA graph needs arrays of unchanging shape, so rows, blocks and items are padded to buckets;
padding is -1 and makes kernels do nothing.  The shapes of all arrays together are the graph's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kernels.contract import ForwardBatch
from kernels.gpu.attention import Items
from kernels.gpu.launch import power_of_two
from kernels.gpu.plan import GroupPlan, PlanShape, plan_group

ROW_BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""Numbers of rows for which decode graphs are kept."""


@dataclass(frozen=True)
class HostStep:
    """Named int32 arrays and, for each cache group, tile heights (narrow, wide, walk) and room for splits."""

    arrays: dict[str, np.ndarray]
    tiles: tuple[tuple[int, int], ...]
    max_splits: tuple[int, ...]

    @property
    def key(self) -> tuple:
        """Equal for steps that can run in the same graph."""
        return (*((name, array.shape) for name, array in self.arrays.items()), self.max_splits)

    def packed(self) -> np.ndarray:
        """One int32 array; each part starts at a multiple of 4 (16 bytes)."""
        flat = np.zeros(_total(self.arrays), np.int32)
        at = 0
        for array in self.arrays.values():
            flat[at : at + array.size] = array.reshape(-1)
            at += _room(array.size)
        return flat


def _room(size: int) -> int:
    return -(-size // 4) * 4


def _total(arrays: dict[str, np.ndarray]) -> int:
    return max(4, sum(_room(array.size) for array in arrays.values()))


@dataclass(frozen=True)
class GroupInputs:
    """One cache group's part of a step, on the device."""

    table: torch.Tensor
    narrow: Items
    wide: Items
    walk: Items
    merged_rows: torch.Tensor
    max_splits: int


@dataclass(frozen=True)
class StepInputs:
    """A step on the device: views of one buffer.  `sampling` float32 [n, 3] and int32 [n, 3], or None."""

    tokens: torch.Tensor
    positions: torch.Tensor
    row_seq: torch.Tensor
    logit_rows: torch.Tensor
    groups: tuple[GroupInputs, ...]
    sampling: tuple[torch.Tensor, torch.Tensor] | None = None


def plan_step(
    batch: ForwardBatch,
    shapes: Sequence[PlanShape],
    sampling: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    padded: bool = False,
) -> HostStep:
    """Lay out a step; `padded` to buckets when it is to run in a graph (one row a sequence, logits of all)."""
    plans = [plan_group(batch, group, shape) for group, shape in enumerate(shapes)]
    n = len(batch.token_ids)
    counts = np.diff(batch.seq_starts)
    rows = bucket(n) if padded else n
    arrays = {
        "tokens": _pad(batch.token_ids, rows, 0),
        "positions": _pad(batch.positions, rows, -1),
        "row_seq": _pad(np.repeat(np.arange(len(counts), dtype=np.int32), counts), rows, 0),
        "logit_rows": np.arange(rows, dtype=np.int32) if padded else np.asarray(batch.logit_rows, np.int32),
    }
    if sampling is not None:
        floats, whole = sampling
        want = rows if padded else len(floats)
        arrays["sampling_floats"] = _pad(np.ascontiguousarray(floats, np.float32).view(np.int32), want, 0)
        arrays["sampling_whole"] = _pad(whole, want, 0)
    for group, plan in enumerate(plans):
        _add_group(arrays, group, batch.block_tables[group], plan, rows, padded)
    splits = tuple(power_of_two(plan.max_splits) if padded else plan.max_splits for plan in plans)
    return HostStep(arrays, tuple((shape.narrow_tile, shape.tile) for shape in shapes), splits)


def bucket(rows: int) -> int:
    """The graph bucket for this many rows, or the number itself beyond the largest."""
    return next((size for size in ROW_BUCKETS if size >= rows), rows)


def _add_group(
    arrays: dict[str, np.ndarray], group: int, table: np.ndarray, plan: GroupPlan, rows: int, padded: bool
) -> None:
    if padded:
        grown = np.full((rows, power_of_two(table.shape[1], 16)), -1, np.int32)
        grown[: table.shape[0], : table.shape[1]] = table
        table = grown
    arrays[f"table{group}"] = np.asarray(table, np.int32)
    arrays[f"merged{group}"] = _pad(plan.merged_rows, rows, -1) if padded else plan.merged_rows
    for name in ("narrow", "wide", "walk"):
        items = getattr(plan, name)
        count = len(items.heads)
        size = power_of_two(count, 16) if padded and count else count
        arrays[f"{name}{group}"] = _pad(items.heads, size, -1)
        arrays[f"{name}_rows{group}"] = _pad(items.rows, size, -1)


def _pad(array: np.ndarray, rows: int, value: int) -> np.ndarray:
    out = np.full((rows, *array.shape[1:]), value, np.int32)
    out[: len(array)] = array
    return out


def device_views(step: HostStep, buffer: torch.Tensor) -> StepInputs:
    """The arrays of `step` as views of an int32 device buffer that holds (or will hold) `step.packed()`."""
    views: dict[str, torch.Tensor] = {}
    at = 0
    for name, array in step.arrays.items():
        views[name] = buffer[at : at + array.size].view(array.shape)
        at += _room(array.size)
    groups = tuple(
        GroupInputs(
            views[f"table{g}"],
            Items(views[f"narrow{g}"], views[f"narrow_rows{g}"], narrow),
            Items(views[f"wide{g}"], views[f"wide_rows{g}"], wide),
            Items(views[f"walk{g}"], views[f"walk_rows{g}"], wide),
            views[f"merged{g}"],
            step.max_splits[g],
        )
        for g, (narrow, wide) in enumerate(step.tiles)
    )
    sampling = None
    if "sampling_floats" in views:
        sampling = (views["sampling_floats"].view(torch.float32), views["sampling_whole"])
    return StepInputs(views["tokens"], views["positions"], views["row_seq"], views["logit_rows"], groups, sampling)
