"""The benchmarks of the kernels: that they run and say what they promise to say, without llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assistant.bench import engine_bench, parallel_bench
from assistant.bench.sides import BenchUnavailable, OurSide


@pytest.fixture(autouse=True)
def no_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise BenchUnavailable("llama.cpp is not installed")

    for module in (engine_bench, parallel_bench):
        monkeypatch.setattr(module, "LlamaSide", missing)


def test_engine_bench_reports_each_figure_beside_its_ratio(
    smollm2_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = engine_bench.EngineBench(
        smollm2_path, rounds=1, transformers=False, only=("prefill@16", "forks4", "decode@128")
    )
    result = engine_bench.run(bench)
    assert set(result["seconds"]) == {"prefill@16", "forks4@1000", "decode@128"}
    assert all(by_side["crosstalk"] > 0 for by_side in result["seconds"].values())
    assert set(result["ratios"]) == {"prefill@16", "decode@128", "forks4@1000"}
    assert result["ratios"]["forks4@1000"] > 0 and result["ratios"]["decode@128"] is None
    assert result["notes"] == ["llama.cpp is not installed"] * len(result["notes"])
    engine_bench.show(result)
    assert "forks4@1000" in capsys.readouterr().out


def test_all_figures_of_the_json_document_have_their_names() -> None:
    names = {name for name, _ in engine_bench._figures([0] * 5000, {})}
    assert {"decode@128", "decode@1024", "decode@4096", "ttft_append30@2000", "forks4@1000"} < names
    assert {f"prefill@{n}" for n in (16, 32, 64, 128, 512)} < names


def test_parallel_bench_counts_bytes_and_restores_sharing(
    smollm2_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = parallel_bench.run(parallel_bench.ParallelBench(smollm2_path, steps=(3, 40), rounds=1))
    assert [row["steps"] for row in result["steps"]] == [3, 40]
    for row in result["steps"]:
        assert set(row["ms"]) == {"per sequence", "shared prefix", "masked"} and row["ratio"] is None
        assert row["mb_read"]["per sequence"] > row["mb_read"]["shared prefix"] == row["mb_read"]["masked"]
    parallel_bench.show(result)
    assert "GB/s" in capsys.readouterr().out


def test_a_shared_prefix_gives_the_logits_of_its_own_prefill(smollm2_path: Path) -> None:
    """The benchmark's own bookkeeping: forks, copies of a partly filled page, trimming."""
    from engine.loading import read_model

    side = OurSide(read_model(smollm2_path), "cpu", 1, 400)
    tokens = list(range(1000, 1101))
    side.forward([(0, tokens[:100], 0)])
    for sequence in (1, 2):
        side.share(0, sequence, 70)
    forked = side.forward([(1, tokens[70:], 70), (2, [7, 8], 70)])[0].copy()
    free = len(side._free)
    side.trim(1, 0)
    assert len(side._free) > free
    side.clear()
    np.testing.assert_array_equal(forked, side.forward([(0, tokens, 0)])[0])
