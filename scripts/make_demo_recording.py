"""Makes demo/conversation.flac: the user's side of a conversation, as a microphone would hear it.

The voice is the catalogue's Piper voice raised by a fifth of its pitch, so that it is nobody's and differs from the
assistant's. Times are seconds of silence before each line; the third line begins while the assistant still answers
the second. Run again after a change of the lines:  .venv/bin/python scripts/make_demo_recording.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from piper import PiperVoice

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.models import find_model

PITCH = 1.18
NOISE = 0.0008
"""Amplitude of the room's hiss, about -62 dB."""


@dataclass(frozen=True)
class Line:
    """What the user says after so many seconds of silence."""

    silence: float
    text: str


LINES = (
    Line(1.0, "What is the capital of France?"),
    Line(4.0, "Tell me how a rainbow is made."),
    Line(3.0, "Wait! How many legs does a spider have?"),
    Line(4.0, "And what do spiders eat?"),
    Line(5.0, ""),
)


def speak(voice: PiperVoice, text: str) -> np.ndarray:
    """One line at 16 kHz, higher than the voice by `PITCH` and as much quicker."""
    rate = voice.config.sample_rate
    sound = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
    return 0.7 * resample(sound.astype(np.float32), round(rate * PITCH), SAMPLE_RATE)


def main() -> None:
    """Write the recording beside this project's demo outputs."""
    voice = PiperVoice.load(find_model("piper-joe"))
    pieces = []
    for line in LINES:
        pieces.append(np.zeros(round(line.silence * SAMPLE_RATE), np.float32))
        if line.text:
            pieces.append(speak(voice, line.text))
    sound = np.concatenate(pieces)
    sound += np.random.default_rng(7).normal(0.0, NOISE, sound.size).astype(np.float32)
    target = Path(__file__).resolve().parent.parent / "demo" / "conversation.flac"
    soundfile.write(target, sound, SAMPLE_RATE, subtype="PCM_16")
    print(f"{target}: {sound.size / SAMPLE_RATE:.1f} s")


if __name__ == "__main__":
    main()
