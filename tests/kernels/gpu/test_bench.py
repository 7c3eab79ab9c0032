"""The benchmark for a card runs through on the interpreter, with a model of two layers, and reports what it must."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assistant.bench.gpu_bench import BARS, GpuBench, run, show
from kernels.gpu.presets import Format
from tests.kernels.gpu.test_model import shape_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_every_figure_is_there(capsys) -> None:
    bench = GpuBench(
        shape=shape_of(n_kv_heads=1), name="tiny", device="cpu", forms=(Format.BF16,), contexts=(8,), prefills=(2,),
        forks=(1, 2), prefix=32, append=3, later=(6, 2), rounds=1, steps=1, copy_bytes=1 << 10, cache_dtype="float16",
    )  # fmt: skip
    result = run(bench)
    assert len(result["kernels"]) == 3 * 4 * 2
    assert set(result["bf16"]) >= {"decode", "prefill", "append", "ttft_append2@6", "forks", "shared", "cancel_steps"}
    assert len(result["bars"]) == 3
    show(result)
    assert "decode@" in capsys.readouterr().out


def test_the_bars_are_those_the_default_run_reports() -> None:
    bench = GpuBench()
    assert f"append{bench.append}@{bench.prefix} over weight read" in BARS
    assert f"shared prefix speed-up, {max(bench.forks)} forks of {bench.prefix}" in BARS


def test_the_check_of_a_card_imports_nothing_else() -> None:
    """torch, triton, numpy and the standard library: everything else is refused before the import."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    names = {'gguf', 'numba', 'soxr', 'typer', 'rich', 'pydantic', 'tokenizers', 'yaml', 'transformers'}\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in self.names: raise ImportError(f'refused: {name}')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import assistant.bench.gpu_bench, tests.kernels.gpu.on_card\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
