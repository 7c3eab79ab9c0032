"""`crosstalk bench engine`: prefill, decode, appends and forks against llama.cpp and transformers, in one run.

All sides read the same file and the same tokens.  They take turns, round after round, so that what else the machine
does meets all of them alike; medians are compared.  llama.cpp runs with and without flash attention, and for each
figure the better of the two counts.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assistant.bench import prose
from assistant.bench.sides import (
    BenchUnavailable,
    LlamaSide,
    OurSide,
    Piece,
    Side,
    Timing,
    TransformersSide,
    medians,
    timed,
)

PREFILLS = (16, 32, 64, 128, 512)
CONTEXTS = (4096, 1024, 128)
FORKS = (1, 2, 4, 8)
FORK_PREFIX, APPEND_CONTEXT, APPEND = 1000, 2000, 30
STEPS = 8
"""Tokens of a decode sample."""
Sample = Callable[[Side], Timing]


@dataclass(frozen=True)
class EngineBench:
    """What to measure: `rounds` samples a figure and side; `only` limits it to figures with one of these beginnings."""

    path: Path
    device: str = "cpu"
    threads: int = 1
    rounds: int = 5
    transformers: bool = True
    only: tuple[str, ...] = ()


def run(bench: EngineBench, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All figures: medians in `seconds`, our speed over theirs in `ratios`; the same in processor time."""
    from engine.loading import read_model

    model_file = read_model(bench.path)
    tokens = bench_tokens(model_file)
    positions = max(CONTEXTS) + 64 * max(FORKS)
    progress("loading")
    ours = OurSide(model_file, bench.device, bench.threads, positions)
    sides: list[Side] = [ours]
    notes: list[str] = []
    try:
        for flash in (False, True):
            sides.append(LlamaSide(bench.path, bench.threads, positions, flash=flash))
    except BenchUnavailable as error:
        notes.append(str(error))
    if bench.transformers:
        try:
            sides.append(TransformersSide(model_file, bench.device, bench.threads))
        except BenchUnavailable as error:
            notes.append(str(error))
    timings: dict[str, dict[str, Timing]] = {}
    costs: dict[str, float] = {}
    for figure, sample in _figures(tokens, costs):
        if bench.only and not figure.startswith(bench.only):
            continue
        progress(figure)
        timings[figure] = _alternate(sides, sample, bench.rounds)
    result: dict[str, Any] = {
        "device": bench.device,
        "threads": bench.threads,
        "model": model_file.name,
        "seconds": {f: {name: t.wall for name, t in by_side.items()} for f, by_side in timings.items()},
        "processor_seconds": {f: {name: t.processor for name, t in by_side.items()} for f, by_side in timings.items()},
        "notes": notes,
    }
    result["ratios"] = _ratios(result["seconds"], costs)
    result["processor_ratios"] = _ratios(result["processor_seconds"], {})
    if not bench.only or "accuracy" in bench.only:
        progress("accuracy")
        result["ratios"]["accuracy"] = accuracy(model_file, ours, [s for s in sides if isinstance(s, LlamaSide)])
    return result


def bench_tokens(model_file: Any) -> list[int]:
    """Plain English, repeated as often as needed."""
    ids = _once(model_file)
    return (ids * (1 + 5000 // len(ids)))[:5000]


# -- samples: each returns seconds ---------------------------------------------------------------------------------


def _timed(side: Side, pieces: list[Piece]) -> tuple[Timing, np.ndarray]:
    # The largest logit belongs to it: greedy decoding needs no more of them.
    return timed(lambda: side.forward(pieces).argmax(axis=1))


def _figures(tokens: list[int], costs: dict[str, float]) -> list[tuple[str, Sample]]:
    """Longest contexts first, so that each side fills its cache once and is then cut back.

    `costs` is told what our step over several forks costs over a one-row step taken right after it.
    """
    pairs: dict[int, list[float]] = {}
    held: dict[str, int] = {}

    def fill(side: Side, n: int) -> None:
        """Sequence 0 holds exactly the first `n` tokens."""
        kept = min(held.get(side.name, 0), n)
        side.trim(0, kept)
        for start in range(kept, n, 512):
            side.forward([(0, tokens[start : min(start + 512, n)], start)])
        held[side.name] = n

    def decode(n: int) -> Sample:
        def sample(side: Side) -> Timing:
            fill(side, n)
            samples, token = [], tokens[n]
            for step in range(STEPS):
                timing, best = _timed(side, [(0, [token], n + step)])
                samples.append(timing)
                token = int(best[0])
            return medians(samples)

        return sample

    def append(side: Side) -> Timing:
        fill(side, APPEND_CONTEXT)
        timing, _ = _timed(side, [(0, tokens[APPEND_CONTEXT : APPEND_CONTEXT + APPEND], APPEND_CONTEXT)])
        return timing

    def forks(count: int) -> Sample:
        def sample(side: Side) -> Timing:
            fill(side, FORK_PREFIX)
            for sequence in range(1, count):
                side.share(0, sequence, FORK_PREFIX)
            samples = []
            for step in range(STEPS):
                pieces = [(s, [tokens[100 * s + step]], FORK_PREFIX + step) for s in range(count)]
                samples.append(_timed(side, pieces)[0])
                if isinstance(side, OurSide):
                    one, _ = _timed(side, pieces[:1])
                    pairs.setdefault(count, []).append(samples[-1].wall / one.wall)
                    costs[f"forks{count}@{FORK_PREFIX}"] = statistics.median(pairs[count])
            for sequence in range(1, count):
                side.trim(sequence, 0)
            return medians(samples)

        return sample

    def prefill(n: int) -> Sample:
        def sample(side: Side) -> Timing:
            side.clear()
            held[side.name] = 0
            return _timed(side, [(0, tokens[:n], 0)])[0]

        return sample

    figures: list[tuple[str, Sample]] = [(f"decode@{CONTEXTS[0]}", decode(CONTEXTS[0]))]
    figures.append((f"ttft_append{APPEND}@{APPEND_CONTEXT}", append))
    figures.append((f"decode@{CONTEXTS[1]}", decode(CONTEXTS[1])))
    figures += [(f"forks{n}@{FORK_PREFIX}", forks(n)) for n in FORKS]
    figures.append((f"decode@{CONTEXTS[2]}", decode(CONTEXTS[2])))
    return figures + [(f"prefill@{n}", prefill(n)) for n in PREFILLS]


def _alternate(sides: list[Side], sample: Sample, rounds: int) -> dict[str, Timing]:
    """Median of `rounds` samples of each side, taken in turns after one that does not count."""
    taken: dict[str, list[Timing]] = {side.name: [] for side in sides}
    gc.collect()
    for number in range(rounds + 1):
        for side in sides:
            if side.name not in taken:
                continue
            try:
                timing = sample(side)
            except BenchUnavailable:
                del taken[side.name]
                continue
            if number:
                taken[side.name].append(timing)
    return {name: medians(samples) for name, samples in taken.items()}


def _ratios(seconds: dict[str, dict[str, float]], costs: dict[str, float]) -> dict[str, Any]:
    """Speed over llama.cpp's better mode; forks: cost of our four-row step over our one-row step."""
    ratios: dict[str, Any] = {}
    for figure, by_side in seconds.items():
        theirs = [s for name, s in by_side.items() if name.startswith("llama.cpp")]
        if not figure.startswith("forks"):
            ratios[figure] = round(min(theirs) / by_side["crosstalk"], 3) if theirs else None
    ratios.update({name: round(cost, 3) for name, cost in costs.items() if name.startswith("forks4")})
    return ratios


# -- accuracy ------------------------------------------------------------------------------------------------------


def accuracy(model_file: Any, ours: OurSide, theirs: list[LlamaSide]) -> dict[str, float | None]:
    """Mean KL to the fp32 reference, ours and llama.cpp's (its better mode), and our change of perplexity.

    Over the whole prose in windows of 512 tokens, each read from its start.
    """
    from kernels.contract import KernelError

    try:
        reference = OurSide(model_file, "reference", 1, 1024, dtype="float32")
    except KernelError:  # no torch here
        return {"kl": None, "kl_llama_cpp": None, "ppl_delta": None}
    tokens = _once(model_file)
    windows = [tokens[i : i + 512] for i in range(0, len(tokens), 512)]
    compared: list[OurSide | LlamaSide] = [ours, *theirs]
    sums = {side.name: 0.0 for side in compared}
    nll = {"reference": 0.0, ours.name: 0.0}
    for window in windows:
        exact = _log_softmax(reference.all_logits(window))
        nll["reference"] += _surprise(exact, window)
        for side in compared:
            got = _log_softmax(side.all_logits(window))
            sums[side.name] += float((np.exp(exact) * (exact - got)).sum())
            if side is ours:
                nll[ours.name] += _surprise(got, window)
    scored = len(tokens) - len(windows)
    llama = [sums[side.name] / len(tokens) for side in theirs]
    return {
        "kl": round(sums[ours.name] / len(tokens), 6),
        "kl_llama_cpp": round(min(llama), 6) if llama else None,
        "ppl_delta": round(float(np.exp((nll[ours.name] - nll["reference"]) / scored) - 1), 6),
    }


def _once(model_file: Any) -> list[int]:
    from engine.text.tokenizer import Tokenizer

    return [int(i) for i in Tokenizer(model_file.vocabulary).encode(prose.TEXT)]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def _surprise(log_probabilities: np.ndarray, tokens: list[int]) -> float:
    return -float(log_probabilities[np.arange(len(tokens) - 1), tokens[1:]].sum())


def show(result: dict[str, Any]) -> None:
    """As lines."""
    print(f"{result['model']} on {result['device']}, {result['threads']} thread(s); milliseconds, medians")
    names = sorted({name for by_side in result["seconds"].values() for name in by_side})
    print(f"{'':20}" + "".join(f"{name:>18}" for name in names) + f"{'ratio':>9}{'(processor)':>13}")
    for figure, by_side in result["seconds"].items():
        cells = "".join(f"{by_side[n] * 1000:18.2f}" if n in by_side else f"{'-':>18}" for n in names)
        ratio = result["ratios"].get(figure)
        steady = result["processor_ratios"].get(figure)
        cells += f"{ratio:9.2f}" if ratio is not None else ""
        print(f"{figure:20}{cells}" + (f"{steady:13.2f}" if steady is not None else ""))
    if "accuracy" in result["ratios"]:
        print("accuracy  " + ", ".join(f"{k} {v}" for k, v in result["ratios"]["accuracy"].items()))
    for note in result["notes"]:
        print(note)
