"""One open stream of PortAudio, at the first rate its device takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assistant.audio.devices import Device, DeviceError, portaudio

BLOCK_SECONDS = 0.01
OTHER_RATES = (48_000, 44_100, 32_000, 16_000, 8_000)
"""Tried where even the device's default rate does not open."""


class Line:
    """One open stream of PortAudio, of the kind it is named by; a microphone, a speaker, or both hang on it.

    Where both do, it is started by the first that asks, and ends for both when either is closed.
    """

    hear: Callable[[NDArray[np.float32], bool], None]
    """Takes samples at `rate`, and whether some were lost; the microphone sets it, before the start."""
    say: Callable[[NDArray[np.float32], float, bool], None]
    """Fills in the samples that are in the air so many seconds from now; the speaker sets it, before the start."""

    def __init__(
        self, device: Device, kind: Literal["InputStream", "OutputStream", "Stream"], latency: float | str = "low"
    ) -> None:
        """`latency`: the device's own buffer in seconds, or "low" for the least it offers. Raises DeviceError."""
        self.device = device
        self.finished = False
        """The sound system ended the stream on its own."""
        self._last_call = time.monotonic()
        self._started = self._closed = False
        callbacks = {"InputStream": self._input, "OutputStream": self._output, "Stream": self._both}
        self.rate, self._stream = self._open(kind, latency=latency, callback=callbacks[kind])

    def _open(self, kind: str, **options: Any) -> tuple[int, Any]:
        sound = portaudio()
        rates = dict.fromkeys((self.device.default_rate, *OTHER_RATES))
        problem: Exception | None = None
        for rate in rates:
            try:
                return rate, getattr(sound, kind)(
                    device=self.device.index,
                    samplerate=rate,
                    blocksize=round(rate * BLOCK_SECONDS),
                    channels=1,
                    dtype="float32",
                    finished_callback=self._finished,
                    **options,
                )
            except (sound.PortAudioError, ValueError) as error:
                problem = error
        raise DeviceError(f"'{self.device.name}' does not open at any rate ({problem}).") from problem

    def start(self) -> None:
        """Let the sound flow, once; raises DeviceError."""
        if self._started:
            return
        self._started = True
        self._last_call = time.monotonic()
        try:
            self._stream.start()
        except portaudio().PortAudioError as error:
            raise DeviceError(f"'{self.device.name}' does not start ({error}).") from error

    def silent_for(self) -> float:
        """Seconds since the sound system last called: a live stream calls every few hundredths of a second."""
        return time.monotonic() - self._last_call

    def close(self) -> None:
        """End it, once. May hang for seconds on a device that is gone: SoundCard does it on a thread of its own."""
        if self._closed:
            return
        self._closed = True
        self._stream.abort(ignore_errors=True)
        self._stream.close(ignore_errors=True)

    def _input(self, indata: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
        self._last_call = time.monotonic()
        self.hear(indata[:, 0], bool(status))

    def _output(self, outdata: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
        self._last_call = time.monotonic()
        self.say(outdata[:, 0], self._ahead(times), bool(status))

    def _both(
        self, indata: NDArray[np.float32], outdata: NDArray[np.float32], frames: int, times: Any, status: Any
    ) -> None:
        self._last_call = time.monotonic()
        self.say(outdata[:, 0], self._ahead(times), status.output_underflow or status.output_overflow)
        self.hear(indata[:, 0], status.input_underflow or status.input_overflow)

    def _ahead(self, times: Any) -> float:
        ahead: float = times.outputBufferDacTime - times.currentTime
        if 0.0 < ahead < 2.0:
            return ahead
        latency = self._stream.latency  # some sound systems do not fill these in
        return latency[1] if isinstance(latency, tuple) else latency

    def _finished(self) -> None:
        self.finished = True
