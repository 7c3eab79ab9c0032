"""Is there a way from the loudspeaker to the microphone?"""

from __future__ import annotations

import numpy as np
import pytest

from assistant.audio import noise
from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE, samples
from assistant.audio.resample import resample
from assistant.ears.echo_path import EchoPath
from assistant.ears.vad import level_db
from assistant.scenarios.format import Room
from assistant.scenarios.room import EchoPath as RoomEcho


@pytest.fixture(scope="module")
def voices(piper_path) -> tuple[np.ndarray, np.ndarray]:
    """The assistant (24 kHz, about 8 s) and the user (16 kHz)."""
    from voices import Voice

    voice = Voice.load(piper_path)
    said = voice.synthesize("The ocean is a vast and mysterious place, and it is home to a great many living things.")
    user = voice.synthesize("What is the capital of Japan, and how many people live there?", speed=0.8)
    higher = resample(user.pcm, round(user.sample_rate * 1.25), SAMPLE_RATE)
    return resample(said.pcm, said.sample_rate, PLAYBACK_RATE), 0.5 * higher


def at(sound: np.ndarray, ms: float, size: int) -> np.ndarray:
    out = np.zeros(size, np.float32)
    start = samples(ms)
    out[start : start + sound.size] = sound[: size - start]
    return out


def verdicts(said: np.ndarray, user: np.ndarray | None, room: Room | None, user_ms: float = 100) -> list[bool]:
    """What is believed after each frame."""
    path, echo = EchoPath(), RoomEcho(room) if room is not None else None
    frames = said[: said.size // PLAYBACK_FRAME * PLAYBACK_FRAME].reshape(-1, PLAYBACK_FRAME)
    size = len(frames) * FRAME
    heard = noise.pink(size / SAMPLE_RATE, -65)[:size]
    if user is not None:
        heard = heard + at(user, user_ms, size)
    far = resample(said, PLAYBACK_RATE, SAMPLE_RATE)
    found = []
    for number, frame in enumerate(frames):
        near = heard[number * FRAME : (number + 1) * FRAME].copy()
        if echo is not None:
            near += echo.pull()
            echo.push(frame)
        path.near(near, level_db(near))
        found.append(path.there)
        path.far(far[number * FRAME : (number + 1) * FRAME], loud=bool(np.abs(frame).max() > 1e-4))
    return found


def test_a_user_with_headphones_is_found_out_within_half_a_second(voices) -> None:
    said, user = voices
    found = verdicts(said, user, None)
    assert found.index(False) <= 25 and not any(found[30:120])


def test_silence_while_it_sounds_shows_headphones_too(voices) -> None:
    found = verdicts(voices[0], None, None)
    assert not found[-1]


@pytest.mark.parametrize("delay_ms", [30, 60, 250])
@pytest.mark.parametrize("echo_db", [0, -6, -15])
def test_an_echo_is_one(voices, echo_db: float, delay_ms: float) -> None:
    found = verdicts(voices[0], None, Room(echo_db=echo_db, delay_ms=delay_ms, decay_ms=120))
    assert np.mean(found) > 0.93


@pytest.mark.parametrize("delay_ms", [60, 250])
def test_an_echo_with_the_user_over_it_is_one_most_of_the_time(voices, delay_ms: float) -> None:
    said, user = voices
    found = verdicts(said, user, Room(echo_db=-6, delay_ms=delay_ms, decay_ms=120), user_ms=1_500)
    assert np.mean(found) > 0.9 and found[-1]


def test_headphones_taken_off_are_noticed(voices) -> None:
    said, _ = voices
    path = EchoPath()
    path.there = False
    far = resample(said, PLAYBACK_RATE, SAMPLE_RATE)
    near = 0.5 * np.concatenate([np.zeros(samples(60), np.float32), far])
    for number in range(40):
        frame = near[number * FRAME : (number + 1) * FRAME]
        path.near(frame, level_db(frame))
        path.far(far[number * FRAME : (number + 1) * FRAME], loud=True)
    assert path.there
