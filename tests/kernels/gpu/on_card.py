"""Every kernel against its definition on a card: `python -m tests.kernels.gpu.on_card`.

The same checks as the interpreted tests, with the shapes of real models, then whole steps: replayed graphs against
single launches, and chained choices.  Prints a line a check; exit status 1 if any failed.  Runs in several processes
and needs only torch, triton and numpy.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from kernels.contract import ModelShape
from kernels.gpu.model import GpuModel
from kernels.gpu.presets import PRESETS, Format, random_weights
from kernels.gpu.recorded import groups_of, made_up_batch
from kernels.gpu.sampling import RowSampling
from kernels.gpu.settings import GpuSettings
from tests.kernels.gpu import checks

F16, BF16 = torch.float16, torch.bfloat16
Check = tuple[str, Callable[[], object]]


def kernel_checks(device: str, fp8: bool) -> Iterator[Check]:
    """Single kernels at sizes the interpreter has no time for."""
    for form in ("dense", "4bit", "8bit", "4bitw", "8bitw"):
        for rows in (1, 2, 16, 17, 100):
            for outputs, cols in ((576, 1536), (1000, 4096)):
                name = f"linear {form} rows={rows} {outputs}x{cols}"
                yield name, partial(checks.check_linear, device, form, rows, outputs, cols, BF16)
        yield f"embed {form}", partial(checks.check_embed, device, form, 576)
    for width, post in ((576, False), (4096, False), (2560, True)):
        for rows in (1, 5):
            norm = partial(checks.check_add_norm, added=True, post=post, picked=None, dtype=BF16)
            yield f"norm {rows}x{width}", partial(norm, device, rows, width)
    for gelu in (False, True):
        yield f"gate gelu={gelu}", partial(checks.check_gate, device, 3, 1536, gelu, BF16)
    stored = [(BF16, 0), (F16, 0), (F16, 1)] + ([(F16, 2)] if fp8 else [])
    heads_of = ((9, 3, 64), (32, 8, 128), (8, 4, 256))
    for dtype, quant in stored:
        rope = partial(checks.check_rope_write, dim=128, norm=True, dtype=dtype, quant=quant)
        yield f"rope {dtype} quant={quant}", partial(rope, device)
        for heads, kv_heads, dim in heads_of if dtype == BF16 else heads_of[1:2]:
            for window in (None, 300):
                fixed = dict(
                    heads=heads, kv_heads=kv_heads, dim=dim, page=32, window=window, split=256, dtype=dtype, quant=quant
                )
                name = f"attention {heads}/{kv_heads}x{dim} window={window} {dtype} quant={quant}"
                yield name, partial(attention_alone_and_together, device, fixed)
    yield "choose", partial(checks.check_choose, device, 128256, 4)


def attention_alone_and_together(device: str, fixed: dict) -> None:
    """Decode, append and prefill in one batch; then forks read together, apart and padded give the same bits."""
    checks.check_attention(device, [1, 1, 9, 70], [700, 33, 520, 400], **fixed)
    forks = ([1, 1, 1, 1], [600, 577, 640, 590])
    results = [
        checks.check_attention(device, *forks, shared=256, launch_bytes=launch_bytes, padded=padded, **fixed)
        for launch_bytes, padded in ((0, False), (-1, False), (1 << 40, True))
    ]
    assert all(torch.equal(results[0], other) for other in results[1:]), "the bits depend on the batch"


def small(shape: ModelShape) -> ModelShape:
    """The first layers of a model, with a small vocabulary."""
    n = 6
    return dataclasses.replace(shape, n_layers=n, layers=shape.layers[:n], vocab=4096)


def step_checks(device: torch.device) -> Iterator[Check]:
    """Whole steps with graphs against the same steps launch by launch."""
    for name, shape in PRESETS.items():
        for form in (Format.BF16, Format.GROUPED4) if name == "llama3-8b" else (Format.GROUPED4,):
            yield f"graphs {name} {form.value}", partial(graphs_equal_launches, small(shape), form, device)


def graphs_equal_launches(shape: ModelShape, form: Format, device: torch.device) -> None:
    """A replayed graph gives the bits of single launches, through growing contexts; choices chain on the card."""
    weights = random_weights(shape, form, device)
    models = [GpuModel(shape, weights, GpuSettings(graphs=graphs), device) for graphs in (True, False)]
    groups = groups_of(shape, 64)
    caches = [model.make_cache(groups, "bfloat16") for model in models]
    prefill = made_up_batch([300], 300, len(groups))
    prefill.token_ids[:] = np.arange(300) % shape.vocab
    steps = [prefill, *(made_up_batch([1], context, len(groups)) for context in (301, 302, 303))]
    for step in steps:
        replayed, launched = (m.forward(step, c).copy() for m, c in zip(models, caches, strict=True))
        assert np.isfinite(replayed).all(), "not finite"
        assert np.array_equal(replayed, launched), f"graph and launches differ at {step.context_lens[0]}"
    tokens: list[list[int]] = []
    for model, cache in zip(models, caches, strict=True):
        chosen = []
        for context in range(304, 310):
            step = made_up_batch([1], context, len(groups))
            step.token_ids[:] = 5 if context == 304 else -1
            chosen.append(model.choose_next(step, cache, [RowSampling(temperature=0.8, seed=1, step=context)]))
        tokens.append([int(choice.ids()[0]) for choice in chosen])
    assert all(0 <= token < shape.vocab for token in tokens[0])
    assert tokens[0] == tokens[1], "chained choices differ"


def run_part(part: int, parts: int) -> int:
    """Run every `parts`-th check; the number that failed."""
    failed = 0
    fp8 = torch.cuda.get_device_capability() >= (8, 9)
    listed = [*kernel_checks("cuda", fp8), *step_checks(torch.device("cuda", torch.cuda.current_device()))]
    for name, check in listed[part::parts]:
        before = time.perf_counter()
        try:
            check()
            verdict = "ok"
        except Exception as error:  # every check is to be run, whatever one of them meets
            failed += 1
            verdict = f"FAILED: {error}"
            traceback.print_exc()
        print(f"{verdict:8} {time.perf_counter() - before:6.2f} s  {name}", flush=True)
    return failed


def main() -> int:
    if not torch.cuda.is_available():
        print("There is no CUDA card here.")
        return 1
    if len(sys.argv) == 3:
        return int(run_part(int(sys.argv[1]), int(sys.argv[2])) > 0)
    # Nearly all of the time is compiling, which one process does on one core.
    started, parts = time.perf_counter(), max(1, min(8, (os.cpu_count() or 1) // 2))
    command = [sys.executable, "-m", "tests.kernels.gpu.on_card"]
    running = [subprocess.Popen([*command, str(part), str(parts)]) for part in range(parts)]
    failed = sum(process.wait() != 0 for process in running)
    print(f"{failed} of {parts} processes found something wrong, {time.perf_counter() - started:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
