"""One microphone and one speaker over PortAudio: callbacks that only copy, and counts of what went wrong.

Each hangs on a line (line.py); on one line where the device allows, else on two (duplex.py).
"""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.devices import Device
from assistant.audio.line import Line
from assistant.audio.resample import StreamResampler
from assistant.audio.ring import SampleRing

QUEUED_SECONDS = 2.0
"""Sound kept for a reader that is late; older sound is dropped, and counted."""
MOST_BUFFERED = 0.12
"""Seconds that a speaker's ring is allowed to lag behind on a machine that is always busy."""

Wake = None
"""What lies in the microphone's queue when somebody wants the reader's attention."""


class Stream:
    """What microphone and speaker share: the line they hang on, and its signs of life."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.device = line.device
        self.rate = line.rate
        """Samples per second."""
        self.xruns = 0
        """Times the sound system said that sound was lost or missing."""

    @property
    def finished(self) -> bool:
        """The sound system ended the stream on its own."""
        return self.line.finished

    def start(self) -> None:
        """See `Line.start`."""
        self.line.start()

    def silent_for(self) -> float:
        """See `Line.silent_for`."""
        return self.line.silent_for()

    def close(self) -> None:
        """See `Line.close`."""
        self.line.close()


class Microphone(Stream):
    """20 ms frames of 16 kHz sound from an input device."""

    def __init__(self, device: Device, line: Line | None = None) -> None:
        """`line`: one that is open already and that a speaker shares. Raises DeviceError."""
        super().__init__(line or Line(device, "InputStream"))
        self._blocks: SimpleQueue[NDArray[np.float32] | None] = SimpleQueue()
        self._resampler = StreamResampler(self.rate, SAMPLE_RATE)
        self._rest = np.zeros(0, np.float32)
        self.dropped = 0
        """Samples (at the device's rate) nobody fetched in time."""
        self.line.hear = self._hear

    def _hear(self, samples: NDArray[np.float32], lost: bool) -> None:
        self.xruns += lost
        self._blocks.put(samples.copy())

    def wake(self) -> None:
        """Make a waiting `read` return (any thread)."""
        self._blocks.put(Wake)

    def read(self, timeout: float) -> NDArray[np.float32] | None:
        """The next frame, float32 [320]; None if `wake` was called or nothing came in time."""
        while len(self._rest) < FRAME:
            try:
                block = self._blocks.get(timeout=timeout)
            except Empty:
                return None
            if block is Wake:
                return None
            late = self._blocks.qsize() * len(block) - round(QUEUED_SECONDS * self.rate)
            if late > 0:
                self.dropped += len(block)
                continue
            self._rest = np.concatenate([self._rest, self._resampler.push(block)])
        frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
        return frame


class Speaker(Stream):
    """Plays 20 ms frames of 24 kHz sound on an output device, and knows how much of it is in the air.

    frames ─► resampler ─► ring ─► callback ─► the device's own buffer ─► air
              `written` counts what went in here          `delay` is what lies between

    The ring is kept near `buffer_seconds`, and nearer to MOST_BUFFERED after it ran dry on a busy machine. The
    microphone's clock, which paces the frames, and the speaker's differ: while the assistant is silent, a silent frame
    too many is left out and one too few is added.
    """

    def __init__(
        self,
        device: Device,
        buffer_seconds: float = 0.04,
        latency: float | str = "low",
        line: Line | None = None,
    ) -> None:
        """`latency`: see `Line`; `line`: one that is open already with it and that a microphone shares.

        Raises DeviceError.
        """
        super().__init__(line or Line(device, "OutputStream", latency))
        self.latency = latency
        self.underflows = 0
        """Times the ring ran dry in the middle of sound."""
        self._calls_at: tuple[float, int] = (0.0, 0)
        """When the sample of that number (of the ring) is in the air; written by the callback alone."""
        self._ring = SampleRing(self.rate)
        self._resampler = StreamResampler(PLAYBACK_RATE, self.rate)
        self._target = round(buffer_seconds * self.rate)
        self._frame = PLAYBACK_FRAME * self.rate // PLAYBACK_RATE
        self._pushed = 0
        """Samples at PLAYBACK_RATE since the last drop, and the ring's position then."""
        self._base = 0
        self._sounding = False
        self._seen_underflows = 0
        self.line.say = self._say

    def _say(self, samples: NDArray[np.float32], ahead: float, lost: bool) -> None:
        now = time.monotonic()
        self.xruns += lost
        first = self._ring.consumed
        there = self._ring.read_into(samples)
        if there:
            self._calls_at = (now + ahead, first)
        if there < len(samples) and self._sounding:
            self.underflows += 1
            self._sounding = False

    def write(self, frame: NDArray[np.float32]) -> None:
        """Play a frame after those before it: float32 [480]."""
        silent = not frame.any()
        waiting = self._ring.waiting
        if self.underflows > self._seen_underflows:
            self._seen_underflows = self.underflows
            self._target = min(self._target + self._frame, round(MOST_BUFFERED * self.rate))
        if waiting == 0 or (silent and waiting < self._target - self._frame):
            # Begin, or begin again after a gap, with as much silence as later delays may eat.
            self._push_silence(self._target - waiting)
        elif silent and waiting > self._target + 2 * self._frame:
            return
        self._pushed += len(frame)
        lost = self._ring.write(self._resampler.push(frame))
        self._base -= lost  # a speaker that stands still: the newest sound does not fit
        self._sounding = not silent

    def _push_silence(self, samples: int) -> None:
        self._ring.write(np.zeros(max(0, samples), np.float32))
        self._base += max(0, samples)

    @property
    def sounding(self) -> bool:
        """Whether the last frame written had sound in it."""
        return self._sounding

    @property
    def delay(self) -> int:
        """Samples at PLAYBACK_RATE that were written and are not in the air yet."""
        at, number = self._calls_at
        in_the_air = number + (time.monotonic() - at) * self.rate if at else 0.0
        in_the_air = min(in_the_air, self._ring.consumed)
        written = self._base + self._pushed * self.rate / PLAYBACK_RATE
        return max(0, round((written - in_the_air) * PLAYBACK_RATE / self.rate))

    def drop(self) -> None:
        """Fade out within a block (10 ms) and forget what was written and not played."""
        self._ring.drop()
        self._resampler.finish()
        self._pushed = 0
        self._base = self._ring.written
        self._sounding = False
