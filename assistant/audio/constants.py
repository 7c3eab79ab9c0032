"""The rates and frame sizes every part of the assistant agrees on.

PCM between parts is numpy float32, mono, in [-1, 1]. All times are sample counts of the
microphone clock (`SAMPLE_RATE`) unless a name says otherwise.
"""

SAMPLE_RATE = 16_000
"""Samples per second of the microphone clock: what VAD and ASR hear."""

FRAME = 320
"""Samples in one frame, 20 ms of the microphone clock."""

FRAME_MS = 1000 * FRAME // SAMPLE_RATE

PLAYBACK_RATE = 24_000
"""Samples per second of what the assistant says."""

PLAYBACK_FRAME = 480
"""Samples in one frame, 20 ms of the playback clock."""


def samples(milliseconds: float, rate: int = SAMPLE_RATE) -> int:
    """The number of samples in so many milliseconds, rounded to the nearest."""
    return round(milliseconds * rate / 1000)


def seconds(count: int, rate: int = SAMPLE_RATE) -> float:
    """The length in seconds of so many samples."""
    return count / rate
