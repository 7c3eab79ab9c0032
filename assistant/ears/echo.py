"""The assistant's own voice in the microphone: taken out before anybody asks whether the user speaks.

A strong canceller (WebRTC's, from the optional package `livekit`) leaves no echo but eats half of the near speech while
both sides speak. So its output only decides *whether* somebody speaks; what is transcribed is the microphone as it is,
which is clean as soon as the assistant is ducked or held.

    played frame ──► far() ─────────────┐ (reference)
    microphone ────► near() ─► cleaned ─► voice detector         microphone ─► transcriber
"""

from __future__ import annotations

import importlib.util
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.resample import StreamResampler
from assistant.ears.echo_path import EchoPath
from assistant.ears.errors import EarsSettingsError
from assistant.ears.vad import level_db

BLOCK = SAMPLE_RATE // 100
"""Samples the WebRTC module takes at a time (10 ms)."""
TAIL = SAMPLE_RATE // 2
"""After so many samples without played sound (a room's echo and the way to it) there is nothing to cancel."""
AUDIBLE = 1e-4
"""Amplitude from which a played frame counts as sound."""
UNDER_ECHO_DB = 14.0
"""What is left this far under the echo's level is residue. In the first two seconds the canceller leaves the echo at
-28 dB, and the voice detector, which does not mind levels, takes that for speech."""
EXPANSION = 2.0
"""Residue goes down by so many more decibels for each one it is under that mark; a hard gate would make new onsets."""
ECHO_DECAY_DB = 0.4
"""How fast the echo's level is forgotten, a frame."""
FOREIGN_DB = 34.0
"""What is left of a frame and stands less than this under the echo is somebody else: in six minutes of the assistant's
own voice in a simulated room the rest was always more than 40 dB under it, and each of 18 cut-ins was less than 30 dB
under it from its second or third frame on."""
NOTHING_DB = -120.0


class CancellerKind(Enum):
    """Which echo canceller to use."""

    AUTO = "auto"  # WebRTC's where it is installed
    WEBRTC = "webrtc"
    OFF = "off"


class Canceller(Protocol):
    """Takes the echo of what was played out of the microphone; both sides in frames of 20 ms."""

    blind: bool
    """It is at work without knowing yet whether there is an echo, and may take the user for one."""
    foreign_db: float
    """Level of what in the last frame is certainly not the assistant's own sound; `NOTHING_DB` if there is none."""

    def far(self, played: NDArray[np.float32]) -> None:
        """What is being played, float32 [480] at `PLAYBACK_RATE`; call before its echo can arrive."""

    def near(self, microphone: NDArray[np.float32]) -> NDArray[np.float32]:
        """The microphone without the echo, float32 [320]."""


class NoCanceller:
    """For headphones, and where no canceller is installed."""

    blind = False
    foreign_db = NOTHING_DB

    def far(self, played: NDArray[np.float32]) -> None:
        """See `Canceller.far`."""

    def near(self, microphone: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Canceller.near`."""
        self.foreign_db = lasting_db(microphone)
        return microphone


class WebrtcCanceller:
    """WebRTC's third echo canceller: finds the delay itself and follows drift; about 0.25 ms a frame.

    28 dB from the first word on, 50 dB after two seconds; a downward expander takes the rest. In 12 simulated scenes
    (echo at 0, -6 and -15 dB, 30 to 250 ms) its own voice was never taken for speech, and the user was noticed in 11.
    """

    def __init__(self) -> None:
        from livekit import rtc

        self._frame: Any = rtc.AudioFrame
        self._module: Any = rtc.AudioProcessingModule(echo_cancellation=True)
        self._resampler = StreamResampler(PLAYBACK_RATE, SAMPLE_RATE)
        self._pending = np.zeros(0, np.float32)
        self._silent_for = TAIL
        self._echo_db = -90.0
        self.blind = False
        self.foreign_db = NOTHING_DB
        self.path = EchoPath()

    def far(self, played: NDArray[np.float32]) -> None:
        """See `Canceller.far`."""
        loud = float(np.abs(played).max()) > AUDIBLE
        self._silent_for = 0 if loud else self._silent_for + FRAME
        sound = self._resampler.push(played)
        self.path.far(sound, loud=loud)
        self._pending = np.concatenate([self._pending, sound])
        while self._pending.size >= BLOCK:
            self._module.process_reverse_stream(self._block(self._pending[:BLOCK]))
            self._pending = self._pending[BLOCK:]

    def near(self, microphone: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Canceller.near`. With nothing in the air, or no way to the microphone, it comes back untouched."""
        blocks = [self._block(microphone[start : start + BLOCK]) for start in range(0, FRAME, BLOCK)]
        for block in blocks:
            self._module.process_stream(block)
        level = level_db(microphone)
        self.path.near(microphone, level)
        self.blind = self._silent_for < TAIL and not self.path.known
        if self._silent_for >= TAIL or not self.path.there:
            self.foreign_db = lasting_db(microphone)
            return microphone
        pcm = np.concatenate([np.frombuffer(block._data, np.int16) for block in blocks])
        cleaned = self._expanded((pcm / np.float32(32768.0)).astype(np.float32), level)
        self.foreign_db = self._foreign(cleaned, microphone)
        return cleaned

    def _foreign(self, cleaned: NDArray[np.float32], microphone: NDArray[np.float32]) -> float:
        if not self.path.known:
            return lasting_db(microphone) if self.path.strange() else NOTHING_DB
        level = level_db(cleaned)
        return level if level > self._echo_db - FOREIGN_DB else NOTHING_DB

    def _expanded(self, cleaned: NDArray[np.float32], level: float) -> NDArray[np.float32]:
        """`cleaned` with what is far under the echo's own level made softer still."""
        self._echo_db -= ECHO_DECAY_DB
        if self._silent_for == 0:
            self._echo_db = max(self._echo_db, level)
        under = self._echo_db - UNDER_ECHO_DB - level_db(cleaned)
        return cleaned if under <= 0 else cleaned * np.float32(10 ** (-EXPANSION * under / 20))

    def _block(self, sound: NDArray[np.float32]) -> Any:
        data = bytearray((np.clip(sound, -1.0, 1.0) * 32767.0).astype("<i2").tobytes())
        return self._frame(data, SAMPLE_RATE, 1, BLOCK)


def lasting_db(frame: NDArray[np.float32]) -> float:
    """Level of the softer half of a frame: a key's click is over within one."""
    return min(level_db(frame[: FRAME // 2]), level_db(frame[FRAME // 2 :]))


def installed() -> bool:
    """Whether the WebRTC canceller can be used (`pip install 'crosstalk-assistant[aec]'`)."""
    return importlib.util.find_spec("livekit") is not None


def make_canceller(kind: CancellerKind = CancellerKind.AUTO) -> Canceller:
    """The canceller that `kind` names; raises `EarsSettingsError` if it is not installed."""
    if kind is CancellerKind.OFF or (kind is CancellerKind.AUTO and not installed()):
        return NoCanceller()
    if not installed():
        raise EarsSettingsError("the WebRTC echo canceller is not installed: pip install 'crosstalk-assistant[aec]'.")
    return WebrtcCanceller()
