"""Loaded models and short ways to run a recording, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.formats import read_sound
from assistant.build import ModelPaths, Parts, load
from assistant.personas import load_persona
from assistant.replay import ClockKind
from assistant.run_replay import ReplayRequest, replay_with
from assistant.settings import parse_settings
from assistant.timeline.record import Timeline

DEMO = Path(__file__).parents[2] / "demo" / "conversation.flac"
LINES = (
    "What is the capital of France?",
    "Tell me how a rainbow is made.",
    "Wait! How many legs does a spider have?",
    "And what do spiders eat?",
)
"""What is said in the demo recording; the third line cuts in on the second's answer."""

Run = Callable[..., Timeline]


@pytest.fixture(scope="session")
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Iterator[Parts]:
    """All models, loaded once."""
    loaded = load(ModelPaths(smollm2_path, whisper_path, piper_path), parse_settings())
    yield loaded
    loaded.close()


@pytest.fixture(scope="session")
def run(parts: Parts) -> Run:
    """Play a recording into the assistant, virtual clock."""

    def play(recording: Path, **wishes: Path) -> Timeline:
        parts.heads.close()
        parts.engine.drop_cache()  # pages of an earlier run would be found again, and counted as such
        request = ReplayRequest(recording, clock=ClockKind.VIRTUAL, as_json=False, **wishes)
        return replay_with(parts, load_persona("default"), request)

    return play


@pytest.fixture(scope="session")
def demo_sound() -> np.ndarray:
    """The demo recording, float32 at 16 kHz."""
    return read_sound(DEMO)


@pytest.fixture
def wav(tmp_path: Path) -> Callable[..., Path]:
    """Write sound to a file: `wav(samples, rate=..., subtype=...)`."""

    def write(sound: np.ndarray, rate: int = SAMPLE_RATE, name: str = "in.wav", **how: str) -> Path:
        soundfile.write(tmp_path / name, sound, rate, **how)
        return tmp_path / name

    return write


def word_errors(expected: str, heard: str) -> float:
    """Word error rate: edits over the number of expected words, case and punctuation apart."""
    from assistant.overlap import plain_words

    a, b = plain_words(expected), plain_words(heard)
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != other))
    return row[-1] / max(1, len(a))
