"""Speech for tests: synthesised users who do not sound like the assistant, and recordings of people."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import SAMPLE_RATE, samples
from assistant.audio.formats import read_sound
from assistant.audio.noise import white
from assistant.audio.resample import resample
from assistant.audio.wav import write_wav

ALLISON = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
ALLISON_TEXTS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
CODEC2 = Path("/usr/share/codec2/wav")

ROOM_DB = -62.0
"""A quiet room: nobody's microphone gives digital silence."""


class SpeechMaker:
    """Makes or finds speech, mono float32 at 16 kHz, peak 0.4; synthesised speech is kept on disk."""

    def __init__(self, voice: Path, cache: Path) -> None:
        self._voice_path = voice
        self._cache = cache

    def user(self, text: str, pitch: float = 1.14, speed: float = 1.0) -> np.ndarray:
        """`text` in the assistant's Piper voice, higher by `pitch` (and as much faster as that makes it)."""
        return self._kept(
            f"piper {self._voice_path.name} {pitch} {speed} {text}", lambda: self._piper(text, pitch, speed)
        )

    def espeak(self, text: str, voice: str = "en-us", words_per_minute: int = 170) -> np.ndarray:
        """`text` by espeak-ng; skips the test where that is not installed."""
        if not shutil.which("espeak-ng"):
            pytest.skip("needs espeak-ng (Debian package espeak-ng)")
        return self._kept(f"espeak {voice} {words_per_minute} {text}", lambda: _espeak(text, voice, words_per_minute))

    def _kept(self, what: str, make) -> np.ndarray:
        path = self._cache / f"{hashlib.sha256(what.encode()).hexdigest()[:20]}.wav"
        if not path.exists():
            part = path.with_suffix(".part")
            write_wav(part, loud(make()), SAMPLE_RATE)
            part.rename(path)
        return read_sound(path)

    @cached_property
    def _voice(self):
        from piper import PiperVoice

        return PiperVoice.load(self._voice_path)

    def _piper(self, text: str, pitch: float, speed: float) -> np.ndarray:
        from piper import SynthesisConfig

        # Quiet settings: the voice's random variation would make every run of the tests another one.
        style = SynthesisConfig(length_scale=pitch / speed, noise_scale=0.0, noise_w_scale=0.0)
        parts = list(self._voice.synthesize(text, style))
        pcm = np.concatenate([part.audio_float_array for part in parts])
        return resample(pcm, round(parts[0].sample_rate * pitch), SAMPLE_RATE)


def recording(name: str) -> np.ndarray:
    """A recording of a person: "agent-loginok" (Asterisk's prompts) or "codec2/morig"; skips when missing."""
    path = CODEC2 / f"{name.removeprefix('codec2/')}.wav" if name.startswith("codec2/") else ALLISON / f"{name}.wav"
    if not path.exists():
        package = "codec2-examples" if name.startswith("codec2/") else "asterisk-core-sounds-en-wav"
        pytest.skip(f"needs the recordings of the Debian package {package}")
    return loud(read_sound(path))


def prompt_text(name: str) -> str:
    """What Asterisk's prompt of this name says; skips when the texts are missing."""
    if not ALLISON_TEXTS.exists():
        pytest.skip("needs the texts of the Debian package asterisk-core-sounds-en")
    for line in gzip.open(ALLISON_TEXTS, "rt", encoding="utf-8"):
        key, _, text = line.partition(":")
        if key == name:
            return text.strip()
    raise KeyError(name)


def loud(pcm: np.ndarray, peak: float = 0.4) -> np.ndarray:
    """At the same peak whoever speaks."""
    return (pcm * (peak / max(1e-6, float(np.abs(pcm).max())))).astype(np.float32)


def trimmed(pcm: np.ndarray, threshold: float = 0.01) -> np.ndarray:
    """Without the silence before and after."""
    sounding = np.nonzero(np.abs(pcm) > threshold)[0]
    return pcm[sounding[0] : sounding[-1] + 1]


def pause(milliseconds: float) -> np.ndarray:
    """Nothing, for so long."""
    return np.zeros(samples(milliseconds), np.float32)


def in_room(*parts: np.ndarray, room_db: float = ROOM_DB, seed: int = 7) -> np.ndarray:
    """The parts one after the other, with the faint noise of a room under all of it."""
    pcm = np.concatenate(parts)
    return (pcm + white(len(pcm) / SAMPLE_RATE + 0.1, room_db, seed)[: len(pcm)]).astype(np.float32)


def word_errors(wanted: Sequence[str], heard: Sequence[str]) -> int:
    """Words inserted, deleted or replaced."""
    from assistant.bench.asr_bench import differing

    return differing(list(wanted), list(heard))


def _espeak(text: str, voice: str, words_per_minute: int) -> np.ndarray:
    run = subprocess.run(
        ["espeak-ng", "-v", voice, "-s", str(words_per_minute), "--stdout", text], capture_output=True, check=True
    )
    pcm, rate = soundfile.read(io.BytesIO(run.stdout), dtype="float32")
    return resample(pcm, rate, SAMPLE_RATE)
