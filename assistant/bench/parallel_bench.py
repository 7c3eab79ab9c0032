"""`crosstalk bench parallel`: eight sequences on one prompt, under three ways of attending, and llama.cpp's two.

The question is seed 003's: parallel decoding slows down as sequences grow, and part of the work is masked away.  How
much, against the alternatives?  Eight sequences share a prompt of 1,230 tokens and have each produced some tokens of
their own; one step gives every sequence one more token.

per sequence   each sequence reads its own pages and the prompt's, by itself
shared prefix  the prompt's pages are read once for all rows, then each sequence's own (what the engine does)
masked         every row is computed against every cell, and what it must not see would be masked away
llama.cpp      its batch API on the same work, one unified cache or one buffer a sequence (split)

Contents don't change the time of a step, so a sequence's own tokens are copies of the first one's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assistant.bench.bandwidth import ReadBandwidth
from assistant.bench.engine_bench import bench_tokens
from assistant.bench.sides import PAGE, BenchUnavailable, LlamaSide, OurSide, Piece, Timing, medians, timed

SEQUENCES, PROMPT = 8, 1230
STEPS = (40, 80, 280, 440, 2320)


@dataclass(frozen=True)
class ParallelBench:
    """What to measure; `steps` are the tokens each sequence has produced already."""

    path: Path
    threads: int = 1
    steps: tuple[int, ...] = STEPS
    rounds: int = 5
    dtype: str = "float16"


class Ours:
    """Our three strategies over one cache: tables are all that differs."""

    def __init__(self, model_file: Any, bench: ParallelBench, tokens: list[int]) -> None:
        self.side = OurSide(
            model_file, "cpu", bench.threads, PROMPT + SEQUENCES * (max(bench.steps) + 4 * PAGE), dtype=bench.dtype
        )
        self.tokens = tokens
        self.held = 0
        shape = model_file.shape
        item = {"float16": 2, "float32": 4, "int8": 1}[bench.dtype]
        scales = 8 if bench.dtype == "int8" else 0
        self.position_bytes = shape.n_layers * shape.n_kv_heads * (2 * shape.head_dim * item + scales)
        self.weight_bytes: int = self.side.model.weight_bytes

    def grow(self, steps: int) -> None:
        """Each sequence holds the prompt and `steps` positions of its own."""
        side, n = self.side, PROMPT + steps
        for start in range(self.held, n, 512):
            side.forward([(0, self.tokens[start : min(start + 512, n)], start)])
        self.held = n
        first = PROMPT // PAGE
        for sequence in range(1, SEQUENCES):
            side.trim(sequence, 0)
            table = list(side.tables[0][:first])
            for page in side.tables[0][first:]:
                table.append(side.page(sequence))
                for group in range(len(side.groups)):
                    side.cache.copy_positions(group, page, table[-1], PAGE)
            side.tables[sequence] = table

    def per_sequence(self, steps: int) -> Timing:
        self.side.model.share_reads = False
        timing = self.shared(steps)
        self.side.model.share_reads = True
        return timing

    def shared(self, steps: int) -> Timing:
        """One step of all sequences."""
        pieces: list[Piece] = [(s, [self.tokens[s]], PROMPT + steps) for s in range(SEQUENCES)]
        return self._timed(self.side.batch(pieces))

    def masked(self, steps: int) -> Timing:
        """Rows that see all cells: what one masked pass computes, without the masking."""
        side = self.side
        pages = list(side.tables[0])
        for sequence in range(1, SEQUENCES):
            pages += side.tables[sequence][PROMPT // PAGE :]
        cells = len(pages) * PAGE
        batch = side.batch([(s, [self.tokens[s]], PROMPT + steps) for s in range(SEQUENCES)])
        # Every row writes to its sequence's last page and sees the pages of all.
        tables = np.tile(np.array(pages, np.int32), (SEQUENCES, 1))
        for sequence in range(SEQUENCES):
            tables[sequence, -1] = side.tables[sequence][-1]
        batch.block_tables = tuple(tables for _ in side.groups)
        batch.positions = np.full(SEQUENCES, cells - 1, np.int32)
        batch.context_lens = np.full(SEQUENCES, cells, np.int32)
        return self._timed(batch)

    def _timed(self, batch: Any) -> Timing:
        return timed(lambda: self.side.model.forward(batch, self.side.cache).argmax(axis=1))[0]

    def bytes_read(self, steps: int) -> dict[str, int]:
        """What a step must read: weights, and keys and values as each strategy reads them."""
        prompt, own = PROMPT * self.position_bytes, steps * self.position_bytes
        shared = self.weight_bytes + prompt + SEQUENCES * own
        return {
            "per sequence": self.weight_bytes + SEQUENCES * (prompt + own),
            "shared prefix": shared,
            "masked": shared,
        }


class Theirs:
    """llama.cpp with one unified cache or one buffer a sequence; flash attention as it is faster at the start."""

    def __init__(self, bench: ParallelBench, tokens: list[int], unified: bool) -> None:
        self.unified, self.tokens = unified, tokens
        own = PROMPT + max(bench.steps) + 64
        positions = PROMPT + (SEQUENCES + 1) * (max(bench.steps) + 64) if unified else SEQUENCES * own
        n_seq = SEQUENCES + 1 if unified else SEQUENCES
        self.held = 0
        best: tuple[float, LlamaSide] | None = None
        for flash in (False, True):
            side = LlamaSide(
                bench.path, bench.threads, positions, flash=flash, n_seq=n_seq, unified=unified
            )
            self._use(side)
            self.grow(bench.steps[0])
            seconds = medians([self.step(bench.steps[0]) for _ in range(3)]).wall
            if best is None or seconds < best[0]:
                if best is not None:
                    best[1].close()
                best = (seconds, side)
            else:
                side.close()
        assert best is not None
        held = self.held
        self._use(best[1])
        self.held = held
        self.name = f"llama.cpp {'unified' if unified else 'split'}"

    def _use(self, side: LlamaSide) -> None:
        self.side, self.held = side, 0

    def grow(self, steps: int) -> None:
        side, n = self.side, PROMPT + steps
        side.trim(0, self.held)
        for start in range(self.held, n, 512):
            side.forward([(0, self.tokens[start : min(start + 512, n)], start)])
        self.held = n
        if self.unified:
            side.spread(SEQUENCES, PROMPT)
        else:
            side.copy_whole(SEQUENCES)

    def step(self, steps: int) -> Timing:
        """One step of all sequences, taken back afterwards."""
        pieces: list[Piece] = [(s, [self.tokens[s]], PROMPT + steps) for s in range(SEQUENCES)]
        timing, _ = timed(lambda: self.side.forward(pieces).argmax(axis=1))
        for sequence in range(SEQUENCES):
            self.side.trim(sequence, PROMPT + steps)
        return timing


def run(bench: ParallelBench, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Milliseconds a step of every strategy at every number of steps, and the bytes behind them."""
    from engine.loading import read_model

    model_file = read_model(bench.path)
    tokens = bench_tokens(model_file)
    progress("loading")
    ours = Ours(model_file, bench, tokens)
    ways: dict[str, tuple[Callable[[int], Timing], Callable[[int], None]]] = {
        "per sequence": (ours.per_sequence, lambda _: None),
        "shared prefix": (ours.shared, ours.grow),
        "masked": (ours.masked, lambda _: None),
    }
    notes: list[str] = []
    try:
        for unified in (True, False):
            progress(f"filling llama.cpp ({'unified' if unified else 'split'})")
            theirs = Theirs(bench, tokens, unified)
            ways[theirs.name] = (theirs.step, theirs.grow)
    except BenchUnavailable as error:
        notes.append(str(error))
    bandwidth = ReadBandwidth(bench.threads)
    table = []
    for steps in bench.steps:
        progress(f"{steps} steps")
        for _, grow in ways.values():
            grow(steps)
        samples: dict[str, list[Timing]] = {name: [] for name in ways}
        speeds = []
        for number in range(bench.rounds + 1):
            speeds.append(bandwidth.sample())
            for name, (step, _) in ways.items():
                timing = step(steps)
                if number:
                    samples[name].append(timing)
        table.append(_row(steps, samples, ours.bytes_read(steps), medians(speeds)))
    return {
        "model": model_file.name, "threads": bench.threads, "sequences": SEQUENCES, "prompt": PROMPT,
        "kv": bench.dtype, "steps": table, "notes": notes,
    }  # fmt: skip


def _row(steps: int, samples: dict[str, list[Timing]], read: dict[str, int], speed: Timing) -> dict[str, Any]:
    """`speed`: bytes a second read, by the wall clock and a second of processor."""
    median = {name: medians(values) for name, values in samples.items()}
    shared = median["shared prefix"]
    llama = [timing for name, timing in median.items() if name.startswith("llama.cpp")]
    return {
        "steps": steps,
        "ms": {name: round(t.wall * 1e3, 2) for name, t in median.items()},
        "processor_ms": {name: round(t.processor * 1e3, 2) for name, t in median.items()},
        "mb_read": {name: round(n / 1e6, 1) for name, n in read.items()},
        "bandwidth_gb_s": round(speed.wall / 1e9, 2),
        "over_bandwidth": round(shared.wall * speed.wall / read["shared prefix"], 3),
        "processor_over_bandwidth": round(shared.processor * speed.processor / read["shared prefix"], 3),
        "ratio": round(min(t.wall for t in llama) / shared.wall, 3) if llama else None,
        "processor_ratio": round(min(t.processor for t in llama) / shared.processor, 3) if llama else None,
    }


def show(result: dict[str, Any]) -> None:
    """As lines."""
    print(
        f"{result['model']}, {result['threads']} thread(s), {result['sequences']} sequences on a prompt of "
        f"{result['prompt']} tokens, {result['kv']} pages"
    )
    names = list(result["steps"][0]["ms"])
    columns = "".join(f"{name:>20}" for name in names)
    print(f"{'steps':>6}{columns}{'MB read':>10}{'GB/s':>7}{'x bytes':>9}{'ratio':>8}{'(processor)':>13}")
    for row in result["steps"]:
        cells = "".join(f"{row['ms'][name]:>17.1f} ms" for name in names)
        cells += f"{row['mb_read']['shared prefix']:10.0f}{row['bandwidth_gb_s']:7.1f}{row['over_bandwidth']:9.2f}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:8.2f}{row['processor_ratio']:13.2f}"
        print(f"{row['steps']:>6}{cells}{ratio}")
    for note in result["notes"]:
        print(note)
