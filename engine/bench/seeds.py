"""`crosstalk bench seeds`: the four discussions this project grew from, run on a real model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.bench.dynamic import DynamicGeneration, PromptCache, dynamic_generation, prompt_cache
from engine.bench.parallel import ParallelDecode, parallel_decode
from engine.bench.rolling import RollingBuffer, rolling_buffer
from engine.loading import read_model
from engine.settings import EngineSettings


@dataclass(frozen=True)
class Seeds:
    """One entry a discussion; `as_json` gives the documented keys."""

    dynamic_generation: DynamicGeneration
    prompt_cache: PromptCache
    rolling_buffer: RollingBuffer
    parallel_decode: ParallelDecode

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return asdict(self)


def run_seeds(
    path: Path, settings: EngineSettings | None = None, progress: Callable[[str], None] = lambda line: None
) -> Seeds:
    """Run all four; every number is measured now."""
    file, settings = read_model(path), settings or EngineSettings()
    progress("seed 000: shared pages in a batch of three prompts")
    dynamic = dynamic_generation(file, settings)
    progress("seed 001: one prefix for many questions")
    cache = prompt_cache(file, settings)
    progress("seed 002: the rolling buffer, up to 32,768 tokens")
    rolling = rolling_buffer(file, settings)
    progress("seed 003: eight sequences on one prompt")
    return Seeds(dynamic, cache, rolling, parallel_decode(file, settings))


def lines(seeds: Seeds) -> list[str]:
    """What happened, for people."""
    d, c, r, p = seeds.dynamic_generation, seeds.prompt_cache, seeds.rolling_buffer, seeds.parallel_decode
    out = ["dynamic generation (seed 000), page size 256, three prompts, 300 new tokens each"]
    for name, batch in (("first batch ", d.first), ("second batch", d.second)):
        counts = "  ".join(
            f"{f}+{ref}+{copy}" for f, ref, copy in zip(batch.forwarded, batch.referenced, batch.copied, strict=True)
        )
        out.append(
            f"  {name}  forwarded+referenced+copied {counts}   total {sum(batch.forwarded)}, {batch.pages} pages"
        )
    g = d.growing
    out.append(
        f"  growing middle: {sum(g.forwarded_per_round) + g.forwarded_at_cleanup} tokens in {g.rounds} rounds "
        f"({g.forwarded_at_cleanup} of them in the clean-up), {g.forwarded_without_reuse} without reuse"
    )
    out += [
        "prompt cache (seed 001)",
        f"  {c.questions} questions x 4 answers on {c.prefix_tokens} shared tokens: {c.forwarded_with} forwarded, "
        f"{c.forwarded_without} without; log-probabilities differ by {c.max_abs_logprob_diff:.2g}; "
        f"{c.peak_pages} pages at most",
        f"  saved ({c.saved_bytes / 1e6:.1f} MB) and loaded: {c.forwarded_after_load} forwarded, "
        f"differ by {c.max_abs_logprob_diff_after_load:.2g}",
        "rolling buffer (seed 002)",
    ]
    for point in r.memory:
        out.append(
            f"  {point.length:6d} tokens  ring {point.ring_bytes / 1e6:7.1f} MB  full {point.full_bytes / 1e6:7.1f} MB"
        )
    out += [
        f"  W = {r.window}: {1 / r.memory_ratio_at_32k:.2f} times less at {r.memory[-1].length} tokens; "
        f"ring and masked cache differ by {r.max_abs_logit_diff:.2g} at {r.compared_positions} positions",
        f"  passkey, W = {r.passkey_window}: inside {r.passkey_inside:.0%}, outside {r.passkey_outside:.0%}, "
        f"full attention at that distance {r.passkey_full_attention:.0%}",
        f"parallel decode (seed 003), {p.sequences} sequences on {p.shared_prompt} shared tokens",
    ]
    for step in p.steps:
        out.append(
            f"  step {step.step:5d}  {step.ms:7.1f} ms  {step.bytes / 1e6:7.1f} MB to read, "
            f"{step.bytes_one_by_one / 1e6:7.1f} MB one by one"
        )
    return out
