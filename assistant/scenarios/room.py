"""The way from the loudspeaker to the microphone: delay, loss, reverberation, and a clock of its own.

A small room is drawn from a seed: the direct sound, a few early reflections and a decaying tail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE, samples
from assistant.audio.resample import StreamResampler
from assistant.scenarios.format import Room

Pcm = NDArray[np.float32]


def impulse_response(room: Room, seed: int = 0) -> Pcm:
    """Of the room without its delay, 16 kHz; its energy is that of `echo_db`."""
    length = max(1, samples(room.decay_ms))
    response = np.zeros(length)
    response[0] = 1.0
    if room.decay_ms:
        random = np.random.default_rng(seed)
        t = np.arange(length) / SAMPLE_RATE
        envelope = 10 ** (-3 * t * 1000 / room.decay_ms)
        tail = random.standard_normal(length) * envelope
        tail[: samples(3)] = 0.0
        response += 0.7 * tail / max(1e-9, float(np.sqrt(np.square(tail).sum())))
    gain = 10 ** (room.echo_db / 20) / float(np.sqrt(np.square(response).sum()))
    return (response * gain).astype(np.float32)


class EchoPath:
    """Frames of the assistant's sound (480 at 24 kHz) in, frames of echo (320 at 16 kHz) out, `delay_ms` later."""

    def __init__(self, room: Room, seed: int = 0) -> None:
        self._response = impulse_response(room, seed)
        self._drift = room.drift_ppm * 1e-6
        self._resampler = StreamResampler(PLAYBACK_RATE, SAMPLE_RATE)
        # What is pushed after frame n was pulled is in the air during frame n + 1.
        self._line = np.zeros(samples(room.delay_ms) + FRAME, np.float32)
        self._tail = np.zeros(self._response.size - 1, np.float32)
        self._phase = 0.0
        self._last = np.float32(0.0)

    def push(self, said: Pcm) -> None:
        """What the loudspeaker plays in the frame after this one."""
        sound = self._drifted(self._resampler.push(said))
        wet = np.convolve(sound, self._response).astype(np.float32) if sound.size else sound
        if not sound.size:
            return
        wet[: self._tail.size] += self._tail
        self._line = np.concatenate([self._line, wet[: sound.size]])
        self._tail = wet[sound.size :]

    def _drifted(self, sound: Pcm) -> Pcm:
        """Linear interpolation at a rate that is off by `drift_ppm`: fine for parts per million."""
        if not self._drift or not sound.size:
            return sound
        padded = np.concatenate([[self._last], sound])
        places = np.arange(self._phase, sound.size, 1 + self._drift)
        self._phase = places[-1] + 1 + self._drift - sound.size
        self._last = sound[-1]
        return np.interp(places, np.arange(padded.size), padded).astype(np.float32)

    def pull(self) -> Pcm:
        """The echo in the next frame of the microphone."""
        frame, self._line = self._line[:FRAME], self._line[FRAME:]
        return frame if frame.size == FRAME else np.concatenate([frame, np.zeros(FRAME - frame.size, np.float32)])
