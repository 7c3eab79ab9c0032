"""Is somebody speaking in this frame? One interface over the detectors, plus the level of the sound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from assistant.audio.constants import FRAME
from assistant.ears.errors import EarsSettingsError
from assistant.ears.silero import SileroVad
from assistant.ears.webrtc import WebrtcVad


class VadKind(StrEnum):
    """Which detector listens."""

    SILERO = "silero"
    WEBRTC = "webrtc"


@dataclass(frozen=True)
class VadSettings:
    """Detector and hysteresis. Probabilities in [0, 1], times in milliseconds, levels in dB."""

    kind: VadKind = VadKind.SILERO
    onset: float = 0.5
    """Probability from which a chunk counts as speech while nobody speaks."""
    offset: float = 0.35
    """Probability below which it no longer does while somebody speaks."""
    likely: float = 0.25
    """Probability that alone is enough for the early, revocable onset signal."""
    min_speech_ms: int = 60
    """Speech shorter than this starts nothing; a spoken "yes" has about 150 ms above the onset."""
    min_silence_ms: int = 80
    """Silence that ends a stretch of speech; the gap inside a "t" or "k" is 50 to 70 ms."""
    min_quiet_ms: int = 120
    """The same when only the level says so and the detector still hears speech, which weak syllables
    in a noisy room can look like."""
    margin_db: float = 6.0
    """A hop this far above the noise floor is sound, when the voice stands out clearly enough."""
    clear_db: float = 28.0
    """Voice over noise from which levels are trusted to end speech earlier than the detector does."""
    webrtc_aggressiveness: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.offset <= self.onset <= 1:
            raise EarsSettingsError("VAD thresholds must obey 0 < offset <= onset <= 1.")
        if self.min_speech_ms < 0 or self.min_silence_ms < 20:
            raise EarsSettingsError("VAD needs min_speech_ms >= 0 and min_silence_ms >= 20.")


@dataclass(frozen=True)
class VadFrame:
    """What is known after one more frame."""

    end: int
    """Sample count of the stream up to and including this frame."""
    probability: float
    """Of the newest whole chunk of the detector."""
    levels_db: tuple[float, float]
    """RMS level of the frame's two halves (10 ms hops), dB below full scale."""
    floor_db: float
    """Estimated level of the background."""
    quick: bool
    """The fast, credulous detector says voice: good for a first suspicion only."""


class VadModel(Protocol):
    """A streaming detector that looks at `chunk` samples at a time."""

    chunk: int

    def probability(self, chunk: np.ndarray) -> float: ...

    def reset(self) -> None: ...


class SpeechDetector:
    """Feeds frames of 20 ms to a detector of any chunk size and tracks the noise floor.

    About 0.11 ms a frame with Silero, one thread, no allocation that grows with the stream.
    """

    def __init__(self, settings: VadSettings | None = None, model: VadModel | None = None) -> None:
        """`model` replaces the detector named by the settings (for tests and experiments)."""
        self.settings = settings or VadSettings()
        self._model = model or load_model(self.settings)
        self._quick = WebrtcVad(self.settings.webrtc_aggressiveness)
        self._floor = NoiseFloor()
        self.reset()

    def reset(self, at_sample: int = 0) -> None:
        """Start a new stream whose first sample has this count (after a device was reopened)."""
        self._model.reset()
        self._quick.reset()
        self._floor.reset()
        self._pending = np.zeros(0, np.float32)
        self._probability = 0.0
        self._end = at_sample

    def process(self, frame: np.ndarray) -> VadFrame:
        """One frame, float32 [320]; returns what is known now."""
        if frame.shape != (FRAME,):
            raise ValueError(f"a frame is {FRAME} samples, not {frame.shape}")
        self._pending = np.concatenate([self._pending, frame])
        size = self._model.chunk
        while len(self._pending) >= size:
            self._probability = self._model.probability(self._pending[:size])
            self._pending = self._pending[size:]
        self._end += FRAME
        half = FRAME // 2
        levels = (level_db(frame[:half]), level_db(frame[half:]))
        floor = self._floor.update(levels, self._probability)
        quick = self._quick.probability(frame) >= 0.5
        return VadFrame(self._end, self._probability, levels, floor, quick)


class NoiseFloor:
    """The background level: falls within a few frames, rises slowly, and slower yet under a voice.

    The gaps between words pull it down again, so speech does not lift it.
    """

    LOWEST_DB = -75.0
    RISE_DB = 0.4
    RISE_UNDER_VOICE_DB = 0.04
    NO_VOICE = 0.1

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the background."""
        self._level: float | None = None

    def update(self, levels: tuple[float, float], probability: float) -> float:
        """Take the levels of one frame's hops and its speech probability; returns the floor in dB."""
        quiet = max(self.LOWEST_DB, min(levels))
        if self._level is None:
            self._level = quiet
        elif quiet < self._level:
            self._level += 0.3 * (quiet - self._level)
        else:
            rise = self.RISE_DB if probability < self.NO_VOICE else self.RISE_UNDER_VOICE_DB
            self._level = min(quiet, self._level + rise)
        return self._level


def level_db(pcm: np.ndarray) -> float:
    """RMS level in dB below full scale; digital silence is -120."""
    return float(10 * np.log10(np.dot(pcm, pcm) / max(1, len(pcm)) + 1e-12))


def load_model(settings: VadSettings) -> VadModel:
    """The detector the settings name."""
    match settings.kind:
        case VadKind.SILERO:
            return SileroVad()
        case VadKind.WEBRTC:
            return WebrtcVad(settings.webrtc_aggressiveness)
