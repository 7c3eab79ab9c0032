"""WebRTC's voice activity detector: nearly free, but it takes typing and music for speech."""

from __future__ import annotations

import numpy as np

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.wav import to_pcm16
from assistant.ears.errors import EarsSettingsError

SMOOTHING = 0.5
"""Weight of the newest decision: the detector says yes or no, hysteresis wants a degree."""


class WebrtcVad:
    """A smoothed yes/no of 20 ms chunks, about 5 µs each."""

    chunk = FRAME

    def __init__(self, aggressiveness: int = 3) -> None:
        if aggressiveness not in range(4):
            raise EarsSettingsError(f"The webrtc aggressiveness must be 0, 1, 2 or 3, not {aggressiveness}.")
        import webrtcvad

        self._make = lambda: webrtcvad.Vad(aggressiveness)
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._vad = self._make()
        self._value = 0.0

    def probability(self, chunk: np.ndarray) -> float:
        """A degree of speech in [0, 1] after `FRAME` more samples (float32)."""
        voiced = self._vad.is_speech(to_pcm16(chunk).tobytes(), SAMPLE_RATE)
        self._value += SMOOTHING * (float(voiced) - self._value)
        return self._value
