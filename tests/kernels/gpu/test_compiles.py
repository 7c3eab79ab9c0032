"""Kernels compile for cards that are not here, and no register is spilled.

The compiler runs in a process of its own, because this one's kernels are interpreted.  What is compiled is recorded
from whole steps of the real shapes, with the very constants the model would use.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ALL_KERNELS = {
    "embed_dense", "embed_grouped4", "embed_grouped8", "add_norm", "rope_write", "gate", "attend", "combine", "choose",
    "gemv_dense", "gemv_grouped4", "gemv_grouped8", "dot_dense", "dot_grouped4", "dot_grouped8",
}  # fmt: skip


def compiled(*options: str) -> list[dict]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "kernels.gpu.recorded", "--json", *options],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(rows: list[dict]) -> None:
    spilled = [row for row in rows if row["spill_stores"] or row["spill_loads"]]
    assert not spilled, spilled
    # 163 KB of shared memory on sm_80, 227 KB on sm_90, 255 registers a thread.
    assert all(row["shared"] <= {80: 163, 90: 227}[row["target"]] * 1024 and row["registers"] <= 255 for row in rows)


@pytest.mark.skipif(not shutil.which("gcc") and not shutil.which("cc"), reason="Triton needs a C compiler")
def test_a_small_model_compiles_to_both_targets() -> None:
    """Attention and the projections of SmolLM2 in the format of its own file."""
    rows = compiled("--quick", "--model", "smollm2-135m", "--only", "attend|gemv_grouped4|dot_grouped4")
    assert {row["target"] for row in rows} == {80, 90}
    assert {row["kernel"] for row in rows} == {"attend", "gemv_grouped4", "dot_grouped4"}
    check(rows)


@pytest.mark.slow
@pytest.mark.parametrize("model", ("smollm2-135m", "llama3-8b", "qwen3-4b", "gemma3-4b"))
def test_everything_a_model_starts_compiles_without_spills(model: str) -> None:
    rows = compiled("--model", model)
    assert {row["kernel"] for row in rows} == ALL_KERNELS
    check(rows)
