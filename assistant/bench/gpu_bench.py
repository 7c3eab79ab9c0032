"""`crosstalk bench engine --device cuda`, the part that needs no model file: speed against the card's own memory.

`python -m assistant.bench.gpu_bench [--json FILE]`.  Random weights of real shapes, nothing to download; needs only
torch, triton and numpy.  Every time stands beside the bytes that had to be read and the copy bandwidth measured in
the same run, because that share is what a decode kernel can be judged by.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernels.contract import ForwardBatch, ModelShape
from kernels.gpu.cache import GpuCache
from kernels.gpu.inputs import plan_step
from kernels.gpu.linear import linear
from kernels.gpu.model import GpuModel, attend_group
from kernels.gpu.presets import PRESETS, Format, random_matrix, random_weights
from kernels.gpu.recorded import groups_of, made_up_batch
from kernels.gpu.sampling import RowSampling
from kernels.gpu.settings import GpuSettings

BARS = {
    "decode_share@1024 bf16": (">=", 0.80),
    "decode_share@1024 4bit": (">=", 0.65),
    "append40@8192 over weight read": ("<=", 2.0),
    "shared prefix speed-up, 8 forks of 8192": (">=", 1.6),
    "cancel to idle, steps": ("<=", 1.0),
}
"""What is asked of a card."""


@dataclass(frozen=True)
class GpuBench:
    """What is measured.  The defaults are an 8B model; `device` "cpu" runs the interpreter, to test this file."""

    shape: ModelShape = PRESETS["llama3-8b"]
    name: str = "llama3-8b"
    device: str = "cuda"
    forms: tuple[Format, ...] = (Format.BF16, Format.GROUPED4)
    contexts: tuple[int, ...] = (128, 1024, 4096)
    prefills: tuple[int, ...] = (16, 32, 64, 128, 512)
    forks: tuple[int, ...] = (1, 2, 4, 8)
    prefix: int = 8192
    append: int = 40
    later: tuple[int, int] = (2000, 30)
    """A conversation's length and the tokens appended to it, until the first token."""
    rounds: int = 5
    steps: int = 16
    copy_bytes: int = 1 << 30
    cache_dtype: str = "bfloat16"
    layers: int | None = None


def run(bench: GpuBench, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All figures: seconds, bytes, shares of the copy bandwidth, and the bars."""
    clock = _Clock(bench.device)
    bandwidth = copy_bandwidth(bench, clock)
    result: dict[str, Any] = {"card": clock.card, "copy_bytes_per_second": bandwidth, "model": bench.name}
    progress(f"{clock.card}: copies {bandwidth / 1e9:.0f} GB/s")
    result["kernels"] = kernel_shares(bench, clock, bandwidth)
    bars: dict[str, float] = {}
    for form in bench.forms:
        progress(f"{bench.name} {form.value}")
        figures = model_figures(bench, form, clock, bandwidth)
        result[form.value] = figures
        if 1024 in bench.contexts:
            bars[f"decode_share@1024 {form.value}"] = figures["decode"]["1024"]["share"]
        if form is Format.BF16:
            bars[f"append{bench.append}@{bench.prefix} over weight read"] = figures["append"]["over_weight_read"]
            bars[f"shared prefix speed-up, {max(bench.forks)} forks of {bench.prefix}"] = figures["shared"]["speed_up"]
            bars["cancel to idle, steps"] = figures["cancel_steps"]
        gc.collect()
        clock.empty_cache()
    result["bars"] = {name: {"value": value, **_judged(name, value)} for name, value in bars.items()}
    return result


def _judged(name: str, value: float) -> dict[str, Any]:
    if name not in BARS:
        return {}
    direction, bar = BARS[name]
    return {"bar": f"{direction} {bar}", "met": value >= bar if direction == ">=" else value <= bar}


class _Clock:
    """Times work on the card by its own events; on the CPU by the wall clock (only to test this file)."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        self.card = torch.cuda.get_device_name() if self.cuda else "interpreter"

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def empty_cache(self) -> None:
        if self.cuda:
            torch.cuda.empty_cache()

    def seconds(self, work: Callable[[], object], rounds: int) -> float:
        """Median time of `work`, after one run that compiles; the host's waiting is not part of it."""
        work()
        self.wait()
        taken = []
        for _ in range(rounds):
            if self.cuda:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                work()
                end.record()
                end.synchronize()
                taken.append(start.elapsed_time(end) / 1e3)
            else:
                before = time.perf_counter()
                work()
                taken.append(time.perf_counter() - before)
        return statistics.median(taken)


def copy_bandwidth(bench: GpuBench, clock: _Clock) -> float:
    """Bytes read and written a second by a large device copy."""
    source = torch.empty(bench.copy_bytes, dtype=torch.uint8, device=clock.device)
    target = torch.empty_like(source)
    return 2 * bench.copy_bytes / clock.seconds(lambda: target.copy_(source), 10)


def kernel_shares(bench: GpuBench, clock: _Clock, bandwidth: float) -> dict[str, Any]:
    """Each matrix of a layer as one GEMV: bytes over time over copy bandwidth.

    Several matrices of a shape are read in turn, together larger than the card's cache, so that each comes from
    memory.
    """
    shape, found = bench.shape, {}
    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    sizes = {
        "qkv": (q + 2 * kv, shape.hidden),
        "o": (shape.hidden, q),
        "gate_up": (2 * shape.ffn, shape.hidden),
        "down": (shape.hidden, shape.ffn),
    }
    for form in Format:
        for name, (rows, cols) in sizes.items():
            one = random_matrix(rows, cols, form, clock.device)
            count = max(2, min(32, int(min(bench.copy_bytes, 256 << 20) / one.nbytes)))
            matrices = [one, *(random_matrix(rows, cols, form, clock.device) for _ in range(count - 1))]
            for batch in (1, 8):
                x = torch.randn(batch, cols, dtype=torch.bfloat16, device=clock.device)
                out = torch.empty(batch, rows, dtype=torch.float32, device=clock.device)

                def work(x: torch.Tensor = x, out: torch.Tensor = out, matrices: list = matrices) -> None:
                    for matrix in matrices:
                        linear(x, matrix, out)

                seconds = clock.seconds(_in_graph(work, clock), bench.rounds) / count
                share = one.nbytes / seconds / bandwidth
                found[f"{form.value} {name} rows={batch}"] = {
                    "microseconds": round(seconds * 1e6, 2),
                    "share": round(share, 3),
                }
            del matrices, one
    return found


def _in_graph(work: Callable[[], None], clock: _Clock) -> Callable[[], object]:
    """The same work without the host's time for starting it."""
    if not clock.cuda:
        return work
    work()
    clock.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def model_figures(bench: GpuBench, form: Format, clock: _Clock, bandwidth: float) -> dict[str, Any]:
    """Decode, appends, forks and prefill of one model."""
    shape = bench.shape
    if bench.layers is not None:
        shape = dataclasses.replace(shape, n_layers=bench.layers, layers=shape.layers[: bench.layers])
    weights = random_weights(shape, form, clock.device)
    model = GpuModel(shape, weights, GpuSettings(), clock.device)
    longest = max(max(bench.contexts), bench.prefix + bench.append, sum(bench.later)) + bench.steps + 64
    page, most = 32, max(bench.forks)
    pages = -(-longest // page) + most * (bench.append + bench.steps + 64) // page + 8 * most
    cache = model.make_cache(groups_of(shape, pages * 2, page), bench.cache_dtype)
    weight_read = weights.step_bytes / bandwidth
    figures: dict[str, Any] = {"step_bytes": weights.step_bytes, "weight_read_seconds": weight_read, "decode": {}}
    for context in bench.contexts:
        seconds = _decode(model, cache, [1], context, 0, bench, clock)
        needed = weights.step_bytes + cache_bytes(shape, cache, context)
        share = needed / seconds / bandwidth
        figures["decode"][str(context)] = {"seconds": seconds, "bytes": needed, "share": round(share, 3)}

    def forward_seconds(new: int, context: int) -> float:
        batch = _batch(cache, [new], context, 0)
        return clock.seconds(lambda: model.forward(batch, cache), bench.rounds)

    figures["prefill"] = {str(n): n / forward_seconds(n, n) for n in bench.prefills}
    seconds = forward_seconds(bench.append, bench.prefix + bench.append)
    figures["append"] = {"seconds": seconds, "over_weight_read": round(seconds / weight_read, 3)}
    context, new = bench.later
    figures[f"ttft_append{new}@{context}"] = forward_seconds(new, context + new)
    figures["forks"] = {
        str(n): _decode(model, cache, [1] * n, 1024 if bench.prefix > 1024 else bench.prefix, 992, bench, clock)
        for n in bench.forks
    }
    figures["shared"] = _shared(model, cache, bench, clock)
    figures["cancel_steps"] = _cancel(model, cache, bench, clock)
    return figures


def _batch(cache: GpuCache, counts: list[int], context: int, shared: int) -> ForwardBatch:
    page = cache.groups[0].page_size
    return made_up_batch(counts, context, len(cache.groups), min(shared, context) // page * page, page)


def cache_bytes(shape: ModelShape, cache: GpuCache, context: int) -> int:
    """Keys and values that a decode step of one sequence must read."""
    total = 0
    for layer in range(shape.n_layers):
        window = shape.layers[layer].window
        seen = context if window is None else min(context, window)
        total += seen * 2 * shape.n_kv_heads * shape.head_dim * cache.pages[cache.slot[layer][0]].element_size()
    return total


def _decode(
    model: GpuModel, cache: GpuCache, counts: list[int], context: int, shared: int, bench: GpuBench, clock: _Clock
) -> float:
    """Seconds a step: tokens are chosen on the card and steps started without waiting for them."""
    batch = _batch(cache, counts, context, shared)
    batch.token_ids[:] = -1 - np.arange(len(counts), dtype=np.int32)
    rows = [RowSampling()] * len(counts)

    def steps() -> None:
        for _ in range(bench.steps):
            model.choose_next(batch, cache, rows)

    return clock.seconds(steps, bench.rounds) / bench.steps


def _shared(model: GpuModel, cache: GpuCache, bench: GpuBench, clock: _Clock) -> dict[str, float]:
    """One layer's attention of many forks on a long prefix: shared items against every fork by itself."""
    batch = _batch(cache, [1] * max(bench.forks), bench.prefix + 32, bench.prefix)
    layer = cache.groups[0].layers[0]
    fixed, pages = model.attention_shape(layer, cache), cache.layer(layer)

    def seconds(share: bool) -> float:
        planned = [dataclasses.replace(model.plan_shape(cache, g), share=share) for g in range(len(cache.groups))]
        inputs = model.send(plan_step(batch, planned))
        rows, group = len(inputs.tokens), inputs.groups[0]
        partial = model.partial(group, rows)
        q = torch.randn(rows, fixed.heads, fixed.head_dim, device=clock.device).to(cache.query_dtype)
        out = torch.empty_like(q)
        return clock.seconds(
            _in_graph(lambda: attend_group(fixed, q, pages, group, inputs.positions, partial, out), clock),
            bench.rounds,
        )

    taken = {share: seconds(share) for share in (True, False)}
    return {"together": taken[True], "apart": taken[False], "speed_up": round(taken[False] / taken[True], 3)}


def _cancel(model: GpuModel, cache: GpuCache, bench: GpuBench, clock: _Clock) -> float:
    """From deciding to stop, in the middle of decoding one step ahead, until the card is idle, in steps."""
    batch = _batch(cache, [1], max(bench.contexts), 0)
    batch.token_ids[:] = -1
    step = _decode(model, cache, [1], max(bench.contexts), 0, bench, clock)
    waits = []
    for _ in range(bench.rounds):
        last = None
        for _ in range(bench.steps):
            if last is not None:
                last.ids()  # the host reads a token, as the engine does, before it starts the step after the next
            last = model.choose_next(batch, cache, [RowSampling()])
        before = time.perf_counter()
        clock.wait()
        waits.append(time.perf_counter() - before)
    return round(statistics.median(waits) / step, 3)


def show(result: dict[str, Any]) -> None:
    """The figures as lines."""
    bandwidth = result["copy_bytes_per_second"]
    print(f"{result['card']}, copy bandwidth {bandwidth / 1e9:.0f} GB/s, {result['model']} with random weights")
    for name, figure in result["kernels"].items():
        print(f"  {name:24} {figure['microseconds']:9.1f} us  {figure['share']:6.1%} of the copy bandwidth")
    for form in (f.value for f in Format if f.value in result):
        figures = result[form]
        print(f"{form}: weights {figures['step_bytes'] / 1e9:.2f} GB a step")
        for context, figure in figures["decode"].items():
            print(
                f"  decode@{context:5} {figure['seconds'] * 1e3:8.3f} ms  {figure['share']:6.1%} of the copy bandwidth"
            )
        for n, speed in figures["prefill"].items():
            print(f"  prefill@{n:4} {speed:10.0f} tok/s")
        print(
            f"  append {figures['append']['seconds'] * 1e3:.2f} ms, {figures['append']['over_weight_read']} reads of W"
        )
        print("  forks " + ", ".join(f"{n}: {s * 1e3:.3f} ms" for n, s in figures["forks"].items()))
        print(f"  shared prefix: {figures['shared']['speed_up']} times the speed of separate reads")
    for name, bar in result["bars"].items():
        print(f"{'met ' if bar.get('met') else 'MISS'}  {name}: {bar['value']} (bar {bar.get('bar', '-')})")


def default_bench() -> GpuBench:
    """The 8B shape where it fits in bf16, else the 4B one."""
    free = torch.cuda.mem_get_info()[0]
    if free > 26 << 30:
        return GpuBench()
    return GpuBench(shape=PRESETS["qwen3-4b"], name="qwen3-4b")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write one JSON document here")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "There is no CUDA card here.\n")
    result = run(default_bench(), lambda what: print(what, flush=True))
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
