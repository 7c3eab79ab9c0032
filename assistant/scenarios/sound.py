"""What of the assistant can be heard, from its sound alone.

A frame that the assistant gives after frame n of the microphone is in the air during frame n + 1: all times here are
seconds on the microphone's clock, that frame included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME_MS, PLAYBACK_FRAME, PLAYBACK_RATE

AUDIBLE = 0.003
"""RMS of ten milliseconds (about -50 dB) from which there is sound."""
AIR = FRAME_MS / 1000
"""Seconds from a frame's number to the air."""
HOP = PLAYBACK_FRAME // 2
JOIN = 0.25
"""Silences shorter than this are the assistant's own way of speaking."""

Pcm = NDArray[np.float32]


def spans(said: Pcm, join: float = JOIN) -> list[tuple[float, float]]:
    """[start, end) in seconds of each stretch of sound in `said` (24 kHz), silences under `join` closed."""
    hops = said[: said.size // HOP * HOP].reshape(-1, HOP)
    if not hops.size:
        return []
    loud = np.sqrt(np.square(hops).mean(axis=1)) > AUDIBLE
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    found: list[tuple[float, float]] = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        start, end = int(first) * HOP / PLAYBACK_RATE + AIR, int(last) * HOP / PLAYBACK_RATE + AIR
        if found and start - found[-1][1] < join:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def first_sound(said: list[tuple[float, float]], after: float) -> float | None:
    """When sound begins at or after `after`; sound that is already there does not count."""
    return next((start for start, _ in said if start >= after), None)


def sounding(said: list[tuple[float, float]], moment: float) -> bool:
    """Whether there is sound at `moment`."""
    return any(start <= moment < end for start, end in said)


def silent_from(said: Pcm, onset: float, quiet: float = 0.5) -> float | None:
    """The first moment from `onset` on that is followed by `quiet` seconds without sound; None: it never comes."""
    last = onset
    for start, end in spans(said, join=0.0):
        if end <= onset:
            continue
        if start - last >= quiet:
            return last
        last = max(last, end)
    return last if said.size / PLAYBACK_RATE - last >= quiet else None
