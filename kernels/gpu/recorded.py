"""What a real model would start on a card, found without one: whole steps recorded over tensors without storage.

`python -m kernels.gpu.recorded [--json] [--quick] [--target 80 ...] [--model NAME ...] [--only PATTERN]` compiles each
distinct kernel and prints registers, shared memory and spills.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels.contract import CacheGroupSpec, ForwardBatch, ModelShape
from kernels.gpu.launch import Launch, interpreted, recording
from kernels.gpu.model import GpuModel
from kernels.gpu.presets import PRESETS, Format, random_weights
from kernels.gpu.sampling import RowSampling
from kernels.gpu.settings import GpuSettings

PAGE = 32
_POINTERS = {
    torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32", torch.int8: "*i8", torch.uint8: "*u8",
    torch.int32: "*i32", torch.int64: "*i64", torch.float8_e4m3fn: "*fp8e4nv",
}  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """What the assembler says of one kernel on one target."""

    target: int
    kernel: str
    model: str
    what: str
    registers: int
    shared: int
    spill_stores: int
    spill_loads: int
    warps: int


def groups_of(shape: ModelShape, pages: int, page_size: int = PAGE) -> tuple[CacheGroupSpec, ...]:
    """Cache groups of a model: one for the full layers, one for each window."""
    windows = sorted({layer.window for layer in shape.layers}, key=lambda w: (w is not None, w))
    return tuple(
        CacheGroupSpec(
            tuple(i for i, layer in enumerate(shape.layers) if layer.window == window), pages, page_size, window
        )
        for window in windows
    )


def made_up_batch(
    counts: list[int], context: int, n_groups: int, shared: int = 0, page_size: int = PAGE
) -> ForwardBatch:
    """Sequences with `counts` new rows each, all ending at `context`; the first `shared` positions are common pages."""
    blocks, common = -(-context // page_size), shared // page_size
    table = np.arange(len(counts) * blocks, dtype=np.int32).reshape(len(counts), blocks)
    table[:, :common] = np.arange(common)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    positions = np.concatenate([np.arange(context - n, context, dtype=np.int32) for n in counts])
    return ForwardBatch(
        token_ids=np.zeros(len(positions), np.int32),
        positions=positions,
        seq_starts=starts,
        context_lens=np.full(len(counts), context, np.int32),
        block_tables=(table,) * n_groups,
        logit_rows=starts[1:] - 1,
    )


def record(shape: ModelShape, form: Format, cache_dtype: str) -> list[Launch]:
    """Every kernel start of: decode of 1 and 8 rows, a shared prefix, 40 appended rows, a prefill of 256, sampling."""
    meta = torch.device("meta")
    model = GpuModel(shape, random_weights(shape, form, meta, layers=_one_of_each(shape)), GpuSettings(), meta)
    groups = groups_of(shape, 64)
    cache = model.make_cache(groups, cache_dtype)
    with recording() as launches:
        for counts, shared in (([1], 0), ([1] * 8, 1024), ([40], 0), ([256], 0)):
            batch = made_up_batch(counts, 2048, len(groups), shared)
            model.step(_plan(model, cache, batch, None), cache)
        batch = made_up_batch([1], 64, len(groups))
        for row in (RowSampling(temperature=0.7), RowSampling(temperature=0.7, top_p=0.9)):
            model.step(_plan(model, cache, batch, row), cache, row.cuts)
    return launches


def _one_of_each(shape: ModelShape) -> int:
    """Enough layers to meet every window."""
    windows = [layer.window for layer in shape.layers]
    return max(windows.index(window) for window in set(windows)) + 1


def _plan(model: GpuModel, cache: Any, batch: ForwardBatch, row: RowSampling | None) -> Any:
    from kernels.gpu.inputs import plan_step
    from kernels.gpu.sampling import pack_sampling

    shapes = [model.plan_shape(cache, group) for group in range(len(cache.groups))]
    return model.send(plan_step(batch, shapes, None if row is None else pack_sampling([row])))


def source_of(launch: Launch) -> ASTSource:
    """The kernel specialised as the runtime would: None and 1 become constants, multiples of 16 are declared."""
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    values = {**launch.args, **launch.constants}
    for place, name in enumerate(launch.kernel.arg_names):
        value = values[name]
        if isinstance(value, torch.Tensor):
            signature[name] = _POINTERS[value.dtype]
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif name in launch.constants or value is None or value == 1:
            signature[name] = "constexpr"
            constants[(place,)] = value
        else:
            signature[name] = "i32"
            if value % 16 == 0:
                attributes[(place,)] = [["tt.divisibility", 16]]
    return ASTSource(fn=launch.kernel, signature=signature, constexprs=constants, attrs=attributes)


def distinct(launches: list[Launch]) -> dict[tuple, Launch]:
    """One launch for each set of constants and pointer types (not for each integer that happens to be 1 or a 16th)."""
    found: dict[tuple, Launch] = {}
    for launch in launches:
        types = tuple(str(value.dtype) for value in launch.args.values() if isinstance(value, torch.Tensor))
        key = (launch.kernel.__name__, tuple(launch.constants.items()), types, tuple(launch.options.items()))
        found.setdefault(key, launch)
    return found


def describe(launch: Launch) -> str:
    """The constants by which one tells the specialisations of a kernel apart."""
    shown = ("K", "N", "HEADS", "D", "WINDOW", "QUANT", "PARTIAL", "HAS_ADDED", "HAS_POST", "SORTED", "BLOCK_M",
             "BLOCK_N", "BLOCK_K", "GROUPS")  # fmt: skip
    values = {**launch.args, **launch.constants}
    return " ".join(f"{name}={int(values[name])}" for name in shown if name in values)


def compile_launch(launch: Launch, target: int) -> tuple[int, int, int, int]:
    """(registers, shared bytes, spill stores, spill loads) of a launch on sm_`target`."""
    compiled = triton.compile(
        source_of(launch),
        target=GPUTarget("cuda", target, 32),
        options=launch.options,
    )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage = subprocess.run([_tool(), "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
        code = subprocess.run([_tool(), "-sass", file.name], capture_output=True, text=True, check=True).stdout
    registers = int(re.search(r"REG:(\d+)", usage).group(1))  # type: ignore[union-attr]
    # Local memory instructions are what a spill is in the machine code.
    stores, loads = len(re.findall(r"\bSTL\b", code)), len(re.findall(r"\bLDL\b", code))
    return registers, compiled.metadata.shared, stores, loads


def _tool() -> str:
    """cuobjdump, which ships in the Triton wheel."""
    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump")


def table(models: list[str], targets: list[int], quick: bool, only: str = "") -> Iterator[Compiled]:
    """Compile what the models start; with `quick` one specialisation of each kernel and tile.

    All models in bf16 over bf16 pages and in 4 bits over int8 pages, the first also in 8 bits over fp16 pages.
    """
    seen: set[tuple] = set()
    for name in models:
        shape = PRESETS[name]
        variants = [(Format.BF16, "bfloat16"), (Format.GROUPED4, "int8"), (Format.GROUPED8, "float16")]
        for form, cache_dtype in variants if name == models[0] else variants[:2]:
            for key, launch in distinct(record(shape, form, cache_dtype)).items():
                short = (
                    launch.kernel.__name__,
                    *(launch.constants.get(c) for c in ("BLOCK_M", "PARTIAL", "SORTED", "QUANT")),
                )
                if (short if quick else key) in seen or not re.match(only, launch.kernel.__name__):
                    continue
                seen.add(short if quick else key)
                for target in targets:
                    registers, shared, stores, loads = compile_launch(launch, target)
                    kernel = launch.kernel.__name__.removesuffix("_kernel")
                    yield Compiled(
                        target, kernel, name, describe(launch), registers, shared, stores, loads, launch.num_warps
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="one specialisation of each kernel and tile")
    parser.add_argument("--target", type=int, action="append", help="80, 90 (default both)")
    parser.add_argument("--model", action="append", choices=sorted(PRESETS), help="default all")
    parser.add_argument("--only", default="", help="kernels whose names begin with this regular expression")
    options = parser.parse_args()
    if interpreted(sys.modules["kernels.gpu.rowops"].gate_kernel):
        parser.error("unset TRITON_INTERPRET: interpreted kernels cannot be compiled")
    if not options.json:
        print("| target | kernel | model | shape | warps | registers | shared bytes | spills |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in table(options.model or list(PRESETS), options.target or [80, 90], options.quick, options.only):
        if options.json:
            print(json.dumps(asdict(row)), flush=True)
        else:
            spills = row.spill_stores + row.spill_loads
            print(
                f"| sm_{row.target} | {row.kernel} | {row.model} | {row.what} | {row.warps} | {row.registers}"
                f" | {row.shared} | {spills} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
