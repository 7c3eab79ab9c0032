"""The host's plan: who reads what, and how many bytes that makes."""

from __future__ import annotations

import dataclasses

import numpy as np

from kernels.gpu.inputs import bucket, device_views, plan_step
from kernels.gpu.plan import PlanShape, plan_group
from kernels.gpu.recorded import made_up_batch

LLAMA = PlanShape(page_size=32, window=None, split=256, padded_share=4, position_bytes=2 * 8 * 128 * 2, step=64)


def test_the_worked_case_of_the_attention_module() -> None:
    batch = made_up_batch([1, 1], 18, 1, shared=16, page_size=4)
    batch.block_tables = (np.array([[7, 2, 5, 4, 9], [7, 2, 5, 4, 6]], np.int32),)
    plan = plan_group(batch, 0, PlanShape(4, None, 8, 4, 1, step=8))
    rows = {
        tuple(head[1:]): sorted(map(int, r[r >= 0]))
        for head, r in zip(plan.narrow.heads, plan.narrow.rows, strict=True)
    }
    assert rows[(0, 8)] == [0, 1] and rows[(8, 16)] == [0, 1]
    assert sorted(int(h[0]) for h in plan.narrow.heads if h[1] == 16) == [0, 1]
    assert len(plan.narrow.heads) == 4 and plan.max_splits == 3


def test_eight_forks_of_8k_read_their_prefix_once() -> None:
    batch = made_up_batch([1] * 8, 8448, 1, shared=8192)
    together = plan_group(batch, 0, LLAMA)
    apart = plan_group(batch, 0, dataclasses.replace(LLAMA, share=False))
    assert together.bytes_read == (8192 + 8 * 256) * LLAMA.position_bytes
    assert apart.bytes_read == 8 * 8448 * LLAMA.position_bytes


def test_sharing_is_chosen_by_bytes() -> None:
    """Two launches only where the second saves more than it costs."""
    batch = made_up_batch([1] * 8, 8448, 1, shared=8192)
    assert len(plan_group(batch, 0, LLAMA).wide.heads) == 32
    dear = dataclasses.replace(LLAMA, launch_bytes=1 << 40)
    assert len(plan_group(batch, 0, dear).wide.heads) == 0


def test_every_row_meets_every_split_once() -> None:
    batch = made_up_batch([1, 7, 40, 1], 3000, 1, shared=1024)
    for window in (None, 700):
        shape = dataclasses.replace(LLAMA, window=window)
        plan = plan_group(batch, 0, shape)
        met: dict[int, list[int]] = {}
        for items in (plan.narrow, plan.wide):
            for head, rows in zip(items.heads, items.rows, strict=True):
                for row in rows[rows >= 0]:
                    met.setdefault(int(row), []).append(int(head[1]) // 256)
        for row, position in enumerate(batch.positions):
            first = 0 if window is None else max(0, int(position) - window + 1) // 256
            assert sorted(met[row]) == list(range(first, int(position) // 256 + 1))


def test_a_window_bounds_what_is_read_and_kept() -> None:
    batch = made_up_batch([1], 100_000, 1)
    plan = plan_group(batch, 0, dataclasses.replace(LLAMA, window=1024))
    assert plan.max_splits <= 1024 // 256 + 1
    assert plan.bytes_read <= (1024 + 64) * LLAMA.position_bytes


def test_long_prefills_are_walked_longest_first() -> None:
    plan = plan_group(made_up_batch([300, 1], 5000, 1), 0, LLAMA)
    lengths = (plan.walk.heads[:, 2] - plan.walk.heads[:, 1]).tolist()
    assert lengths == sorted(lengths, reverse=True) and len(lengths) == -(-300 // 16)
    assert plan.merged_rows.tolist() == [300]


def test_a_growing_conversation_meets_few_graphs() -> None:
    keys = set()
    for context in range(100, 4000, 7):
        keys.add(plan_step(made_up_batch([1], context, 1), [LLAMA], padded=True).key)
    assert len(keys) <= 6
    assert bucket(3) == 4 and bucket(64) == 64 and bucket(65) == 65


def test_one_buffer_holds_every_array() -> None:
    import torch

    step = plan_step(made_up_batch([3, 1], 300, 2), [LLAMA, dataclasses.replace(LLAMA, window=64)])
    views = device_views(step, torch.from_numpy(step.packed()))
    assert views.positions.tolist() == step.arrays["positions"].tolist()
    assert views.groups[1].table.tolist() == step.arrays["table1"].tolist()
    assert views.groups[1].narrow.rows.tolist() == step.arrays["narrow_rows1"].tolist()
    assert all(t.storage_offset() % 4 == 0 for t in (views.tokens, views.positions, views.groups[1].table))
