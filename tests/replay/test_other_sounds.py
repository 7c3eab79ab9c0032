"""The same assistant on silence, noise, odd formats and long recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio import noise
from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.timeline.events import EventType
from tests.replay.conftest import LINES, Run, word_errors

Wav = Callable[..., Path]


def right_channel(path: Path) -> np.ndarray:
    return soundfile.read(path, dtype="float32")[0][:, 1]


@pytest.mark.parametrize("kind", ["silence", "white", "hum", "keyboard", "pink"])
def test_no_speech_no_turn(kind: str, run: Run, wav: Wav, tmp_path: Path) -> None:
    seconds = 12.0
    sound = np.zeros(round(seconds * SAMPLE_RATE), np.float32) if kind == "silence" else made(kind, seconds)
    timeline = run(wav(sound), out=tmp_path / "out.wav")
    assert not timeline.turns
    assert not any(event.type is EventType.USER_TURN for event in timeline.events)
    assert not right_channel(tmp_path / "out.wav").any()


def made(kind: str, seconds: float) -> np.ndarray:
    sound: np.ndarray = getattr(noise, kind)(seconds)
    return 0.1 * sound / max(1e-6, float(np.abs(sound).max()))


def first_question(demo_sound: np.ndarray) -> np.ndarray:
    return demo_sound[: round(3.5 * SAMPLE_RATE)]


@pytest.mark.parametrize(
    ("rate", "channels", "subtype"),
    [(8_000, 1, "PCM_16"), (44_100, 2, "PCM_24"), (48_000, 1, "FLOAT"), (48_000, 2, "PCM_32"), (22_050, 3, "DOUBLE")],
)
def test_any_format(rate: int, channels: int, subtype: str, run: Run, wav: Wav, demo_sound: np.ndarray) -> None:
    sound = resample(first_question(demo_sound), SAMPLE_RATE, rate)
    columns = np.stack([sound] * channels, axis=1) if channels > 1 else sound
    timeline = run(wav(columns, rate, subtype=subtype))
    assert len(timeline.turns) == 1
    assert word_errors(LINES[0], timeline.turns[0].user_text) == 0.0
    assert timeline.turns[0].assistant_text


def test_speech_over_noise_is_still_heard(run: Run, wav: Wav, demo_sound: np.ndarray) -> None:
    speech = first_question(demo_sound)
    timeline = run(wav(speech + 0.15 * made("pink", len(speech) / SAMPLE_RATE)[: len(speech)]))
    assert [word_errors(LINES[0], turn.user_text) for turn in timeline.turns] == [0.0]


def test_speech_from_the_very_first_sample(run: Run, wav: Wav, demo_sound: np.ndarray) -> None:
    timeline = run(wav(demo_sound[round(1.02 * SAMPLE_RATE) : round(3.5 * SAMPLE_RATE)]))
    assert [word_errors(LINES[0], turn.user_text) for turn in timeline.turns] == [0.0]


def test_a_recording_that_ends_in_the_middle_of_speech(run: Run, wav: Wav, demo_sound: np.ndarray) -> None:
    timeline = run(wav(demo_sound[: round(2.25 * SAMPLE_RATE)]))
    assert len(timeline.turns) == 1 and timeline.turns[0].assistant_text


@pytest.mark.slow
def test_ten_minutes(run: Run, wav: Wav, demo_sound: np.ndarray) -> None:
    times = round(600 * SAMPLE_RATE / len(demo_sound))
    timeline = run(wav(np.tile(demo_sound, times)))
    assert timeline.duration >= 590
    assert len(timeline.turns) >= times * len(LINES) - 2
    heard = " ".join(turn.user_text for turn in timeline.turns)
    assert word_errors(" ".join(LINES * times), heard) <= 0.1
    assert not any(event.type is EventType.ERROR for event in timeline.events)
    assert all(turn.tokens.forwarded <= 40 for turn in timeline.turns)
