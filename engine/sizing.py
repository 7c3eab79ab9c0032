"""How the memory limit becomes pages."""

from __future__ import annotations

from engine.errors import OutOfPages
from engine.settings import EngineSettings
from kernels.contract import CacheGroupSpec, ModelShape

_ITEM_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def position_bytes(shape: ModelShape, n_layers: int, dtype: str) -> float:
    """Bytes of one position's keys and values in `n_layers` layers; int8 adds one float32 scale a head."""
    per_head = 2 * (shape.head_dim + 4) if dtype == "int8" else 2 * shape.head_dim * _ITEM_BYTES.get(dtype, 2.0)
    return n_layers * shape.n_kv_heads * per_head


def plan_groups(shape: ModelShape, settings: EngineSettings, context: int) -> tuple[CacheGroupSpec, ...]:
    """Cache groups, one for all full layers and one for each window, that together stay within the limit.

    A sequence needs `window + slack + one step` positions of a windowed group however long it is, so such a group gets
    that many for `ring_sessions` sequences, but at most three quarters of the memory; full layers get the rest.
    """
    by_window: dict[int | None, list[int]] = {}
    for number, layer in enumerate(shape.layers):
        by_window.setdefault(layer.window, []).append(number)
    windows = sorted(window for window in by_window if window is not None)
    size, left = settings.page_size, float(settings.memory_bytes)
    pages: dict[int | None, int] = {}
    for i, window in enumerate(windows):
        cost = position_bytes(shape, len(by_window[window]), settings.kv_dtype) * size
        if settings.window_slack is None:
            wanted = settings.ring_sessions * (-(-context // size))
        else:
            ring = min(context, window + settings.window_slack + settings.max_rows)
            wanted = settings.ring_sessions * (-(-ring // size) + 1)
        last = i == len(windows) - 1 and None not in by_window
        share = left if last else left * 0.75
        pages[window] = int(share // cost) if last else min(wanted, int(share // cost))
        left -= pages[window] * cost
    if None in by_window:
        cost = position_bytes(shape, len(by_window[None]), settings.kv_dtype) * size
        pages[None] = int(left // cost)
    for kept, n in pages.items():
        if n < 2:
            kind = "full" if kept is None else "windowed"
            raise OutOfPages(
                f"{settings.memory_bytes} bytes hold {n} pages of {size} positions for the {kind} layers: "
                "raise memory_bytes or choose smaller pages."
            )
    return tuple(CacheGroupSpec(tuple(by_window[kept]), n, size, kept) for kept, n in pages.items())
