"""Seed 002: the rolling buffer.  Memory against length, equality with a masked cache, and what a window forgets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from engine.bench.variants import longer, shallow, uncomputed, windowed
from engine.engine import Engine
from engine.loading import ModelFile
from engine.session import Session
from engine.settings import EngineSettings, Sampling
from engine.sizing import position_bytes

MIB = 1024 * 1024
KEYS = (48213, 71904, 26587, 90341, 35628)
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "


@dataclass(frozen=True)
class MemoryPoint:
    """Bytes of keys and values a sequence of `length` holds, on the ring and with everything kept."""

    length: int
    ring_bytes: int
    full_bytes: int


@dataclass(frozen=True)
class RollingBuffer:
    """Seed 002.  `memory_ratio_at_32k` is ring over full; passkey figures are the share of five keys named."""

    window: int
    memory: list[MemoryPoint]
    memory_ratio_at_32k: float
    compared_positions: int
    max_abs_logit_diff: float
    passkey_window: int
    passkey_inside: float
    passkey_outside: float
    passkey_full_attention: float


def rolling_buffer(file: ModelFile, settings: EngineSettings, longest: int = 32768) -> RollingBuffer:
    """All three questions of the discussion, on the model at hand with a window in every layer."""
    window = 4096
    memory = memory_curve(file, settings, window, longest)
    compared, difference = ring_against_mask(file, settings)
    small = 512
    with Engine(windowed(file, small), replace(settings, memory_bytes=128 * MIB)) as engine:
        inside, outside = passkey(engine, small // 2), passkey(engine, 3 * small)
    with Engine(file, replace(settings, memory_bytes=128 * MIB)) as engine:
        unlimited = passkey(engine, 3 * small)
    last = memory[-1]
    return RollingBuffer(
        window, memory, last.ring_bytes / last.full_bytes, compared, difference, small, inside, outside, unlimited
    )


def memory_curve(
    file: ModelFile, settings: EngineSettings, window: int, longest: int, compute: bool = True
) -> list[MemoryPoint]:
    """Pages actually held while a sequence grows, in both kinds of engine.

    Two layers of the model are enough: every layer holds the same.  Both sides really forward every token, unless
    `compute` is false.
    """
    lengths = [n for n in (1024, 2048, 4096, 8192, 16384, 32768) if n <= longest]
    held: dict[int | None, list[int]] = {}
    for slack in (settings.window_slack if settings.window_slack is not None else 256, None):
        model = windowed(longer(shallow(file, 2), longest + 64), window)
        cost = int(position_bytes(model.shape, 2, settings.kv_dtype))
        changed = replace(settings, window_slack=slack, memory_bytes=(longest + 4096) * cost, ring_sessions=1)
        with Engine(model, changed) as engine, nullcontext() if compute else uncomputed(engine):
            session, ids = engine.new_session(), np.random.default_rng(1).integers(5, model.shape.vocab, longest)
            held[slack] = []
            for n in lengths:
                session.append(ids[len(session) : n].tolist())
                held[slack].append(engine.stats.pools[0].held * settings.page_size * cost)
    ring, full = held.values()
    scale = file.shape.n_layers // 2
    return [MemoryPoint(n, r * scale, f * scale) for n, r, f in zip(lengths, ring, full, strict=True)]


def ring_against_mask(file: ModelFile, settings: EngineSettings, window: int = 96, n: int = 480) -> tuple[int, float]:
    """Largest logit difference between a ring and the whole cache with a mask, five windows long, all layers."""
    rows: list[np.ndarray] = []
    for slack in (0, None):
        with Engine(windowed(file, window), replace(settings, window_slack=slack, memory_bytes=64 * MIB)) as engine:
            ids = engine.tokenizer.encode(FILLER * (n // 8))[:n]
            session = engine.new_session(ids[:8])
            scores = session.score([ids[8:]], top=1, keep_last=True)[0]
            grown = engine.new_session()
            logits = []
            for start in range(0, n, 37):  # odd steps, so that chunks straddle pages and window edges
                grown.append(ids[start : start + 37])
                logits.append(grown.last_logits())
            rows.append(np.concatenate([scores.logprobs, *logits]))
    return n - 8 + -(-n // 37), float(np.abs(rows[0] - rows[1]).max())


def passkey(
    engine: Engine, distance: int, change: Callable[[Session, int], None] | None = None, room: int = 0
) -> float:
    """Share of five keys the model names after `distance` tokens of filler.

    `change(session, room)` may drop something from the session right before the question, as a policy under test would.
    """
    encode, found = engine.tokenizer.encode, 0
    for key in KEYS:
        told = encode(FILLER * 2 + f"The pass key is {key}. Remember it. {key} is the pass key. ")
        asked = encode(" What is the pass key? The pass key is")
        with engine.new_session(told + encode(FILLER * (distance // 16 + 1))[:distance]) as session:
            if change is not None:
                change(session, room)
            session.append(asked)
            found += str(key) in session.generate(Sampling(max_tokens=8)).text()
    return found / len(KEYS)
