"""Compiled code: kept on disk, told about, not needed on disk; every instruction family gives the same model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.cpu import BACKEND, jit
from kernels.cpu.isa import Isa, detect
from tests.kernels.cpu.small import SHAPES, Part, cache_groups, make_batch, weights_for
from tests.kernels.cpu.test_tiles import FAMILIES

SCRIPT = """
import sys, numpy as np
from kernels.cpu import BACKEND
from tests.kernels.cpu.small import SHAPES, weights_for
told = []
BACKEND.load(SHAPES["llama"], weights_for(SHAPES["llama"]), progress=lambda *step: told.append(step))
from kernels.cpu import jit
library = next(iter(jit._libraries.values()))
hits = sum(getattr(part, "cache_hits", 0) for part in (library._kept | library._common).values())
print(library.folder is not None, len(told), told[-1][0], told[-1][1] == told[-1][2], hits)
"""


def load_in_a_new_process(folder: Path) -> list[str]:
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, jit.CACHE_VARIABLE: str(folder), "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_compiled_code_is_kept_and_found_again(tmp_path: Path) -> None:
    kept, steps, last, complete, _ = load_in_a_new_process(tmp_path)
    assert (kept, last, complete) == ("True", "ready", "True") and int(steps) > 10
    assert list(tmp_path.rglob("*.nbc"))
    *_, hits = load_in_a_new_process(tmp_path)
    assert int(hits) >= int(steps) - 3  # all kernels and phases; the two functions called from Python count elsewhere


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_made_only_costs_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    kept, steps, last, *_ = load_in_a_new_process(blocked)
    assert (kept, last) == ("False", "ready")


@pytest.mark.parametrize("isa", [isa for isa in FAMILIES if isa is not detect()], ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_instruction_families_agree(isa: Isa, name: str) -> None:
    shape = SHAPES[name]
    weights = weights_for(shape)
    groups = cache_groups(shape, 8, 16)
    tokens = [int(t) for t in np.random.default_rng(10).integers(0, 200, 40)]
    results = []
    for family in (detect(), isa):
        model = BACKEND.load(shape, weights, isa=family)
        cache = model.make_cache(groups)
        part = Part(tokens, 0, [0, 1, 2], "all")
        results.append(model.forward(make_batch([part], groups), cache).copy())
    np.testing.assert_allclose(results[1], results[0], atol=1e-5 * np.abs(results[0]).max())
