"""Dropping a stretch of the past in place: later keys are turned back to their new positions.

    before   0 .. keep-1 | keep .. keep+drop-1 | keep+drop .. n-1
    after    0 .. keep-1 |                      keep .. n-drop-1

A rotary key at position p turned by -drop is the key of position p - drop, so the result looks like a cache of the
shorter text.  It is not that cache: keys and values of the kept tail were computed while the dropped tokens were still
in sight.  What this does to answers is measured in docs/long-context.md; nothing in the engine does it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.errors import EngineError, ShiftRefused
from engine.jobs import LogitsJob, Slot
from engine.pages.sequence import Sequence
from kernels.contract import RopeSpec

if TYPE_CHECKING:
    from engine.engine import Engine


def refuse_reason(engine: Engine) -> str | None:
    """Why this model's cache cannot be shifted, None if it can."""
    shape = engine.shape
    if any(layer.window is not None for layer in shape.layers):
        return "sliding-window layers have already let go of what a shift would move into view"
    if any(layer.rope.factors is not None or layer.rope.linear != 1.0 for layer in shape.layers):
        return "its RoPE is scaled, so that positions mean different things to different pairs"
    if engine.store.cache.dtype == "int8":
        return "int8 pages cannot be turned without rounding a second time; use float16 or float32 pages"
    return None


def shift_session(engine: Engine, slot: Slot, keep: int, drop: int) -> None:
    """Drop `drop` ids after the first `keep`; raises `ShiftRefused` where that would be wrong."""
    reason = refuse_reason(engine)
    if reason is not None:
        raise ShiftRefused(f"This model cannot be shifted: {reason}. Use compaction instead.")
    engine.worker.submit(LogitsJob(slot, pages=True)).result()

    def move() -> None:
        seq = slot.seq
        if keep < 0 or drop <= 0 or keep + drop >= len(seq.ids):
            raise EngineError(f"Cannot drop {drop} of {len(seq.ids)} ids after the first {keep}.")
        _move(engine, slot, seq, keep, drop)

    engine.worker.call(move, slot)


def _move(engine: Engine, slot: Slot, seq: Sequence, keep: int, drop: int) -> None:
    store, size = engine.store, engine.store.page_size
    kept = engine.store.fork(seq)
    try:
        store.truncate(kept, keep)
        positions = range(keep + drop, len(seq.ids))
        kept.ids.extend(seq.ids[positions.start :])
        # Turned keys are not what their tokens alone would give: under a private name nobody finds them as a prefix.
        kept.salt(keep // size)
        store.reserve(kept, len(kept.ids))
        store.begin_write(kept, len(kept.ids))
        for g in range(len(store.pools)):
            old = [store.cache.export_page(g, int(n), size) for n in seq.tables[g][: -(-len(seq.ids) // size)]]
            keys = np.concatenate([arrays[0] for arrays in old], axis=1)[:, positions.start : positions.stop]
            values = np.concatenate([arrays[1] for arrays in old], axis=1)[:, positions.start : positions.stop]
            for i, layer in enumerate(store.groups[g].layers):
                keys[i] = turn(keys[i], engine.shape.layers[layer].rope, -drop)
            _write(engine, kept, g, keep, keys, values)
        store.advance(kept, len(kept.ids))
    except BaseException:
        store.drop(kept, keep=False)
        raise
    slot.seq, slot.tentative = kept, None
    store.drop(seq)


def _write(engine: Engine, seq: Sequence, g: int, keep: int, keys: np.ndarray, values: np.ndarray) -> None:
    store, size = engine.store, engine.store.page_size
    for block in range(keep // size, -(-len(seq.ids) // size)):
        page = int(seq.tables[g][block])
        low, high = max(keep, block * size), min((block + 1) * size, len(seq.ids))
        have = tuple(array.copy() for array in store.cache.export_page(g, page, high - block * size))
        for array, moved in zip(have, (keys, values), strict=True):
            array[:, low - block * size :] = moved[:, low - keep : high - keep]
        store.cache.import_page(g, page, have)


def turn(keys: np.ndarray, rope: RopeSpec, by: int) -> np.ndarray:
    """Rotate keys [n, heads, head_dim] by `by` positions, in float32, back to their own type."""
    half = rope.dim // 2
    angles = np.float32(by) * rope.inverse_frequencies()
    cos, sin = np.cos(angles), np.sin(angles)
    k = keys.astype(np.float32)
    a, b = k[..., :half], k[..., half : 2 * half]
    turned = np.concatenate((a * cos - b * sin, b * cos + a * sin, k[..., 2 * half :]), axis=-1)
    return turned.astype(keys.dtype)
