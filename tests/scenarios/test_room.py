"""The way from the loudspeaker to the microphone."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.scenarios.format import Room
from assistant.scenarios.room import EchoPath, impulse_response


def through(room: Room, sound: np.ndarray) -> np.ndarray:
    """`sound` (24 kHz) as the microphone hears it, frame by frame as in a run."""
    path = EchoPath(room)
    heard = []
    for frame in sound.reshape(-1, PLAYBACK_FRAME):
        heard.append(path.pull())
        path.push(frame)
    return np.concatenate(heard)


def noise(seconds: float) -> np.ndarray:
    random = np.random.default_rng(3)
    rough = random.standard_normal(round(seconds * PLAYBACK_RATE))
    return (0.1 * np.convolve(rough, np.ones(6) / 6, "same")).astype(np.float32)


@pytest.mark.parametrize("delay", [20, 60, 250])
def test_delay_and_level(delay: float) -> None:
    sound = np.zeros(PLAYBACK_RATE * 2, np.float32)
    sound[PLAYBACK_RATE // 2] = 1.0
    heard = through(Room(echo_db=0, delay_ms=delay, decay_ms=0), sound)
    # A frame is in the air one frame after the microphone's frame of the same number.
    at = int(np.abs(heard).argmax()) / SAMPLE_RATE
    assert at == pytest.approx(0.52 + delay / 1000, abs=0.002)


def test_echo_has_the_level_that_is_asked_for() -> None:
    sound = noise(4.0)
    heard = through(Room(echo_db=-6, delay_ms=60, decay_ms=120), sound)
    loud = np.sqrt(np.mean(heard[SAMPLE_RATE:] ** 2)) / np.sqrt(np.mean(sound[PLAYBACK_RATE:] ** 2))
    assert 20 * np.log10(loud) == pytest.approx(-6, abs=1.5)


def test_reverberation_decays() -> None:
    response = impulse_response(Room(echo_db=0, decay_ms=200))
    early, late = response[48:1_000], response[2_200:]
    assert np.square(early).sum() > 100 * np.square(late).sum()
    assert np.square(response).sum() == pytest.approx(1.0, rel=1e-3)


def test_a_drifting_clock_moves_the_echo() -> None:
    sound = noise(20.0)
    still = through(Room(echo_db=0, delay_ms=60, decay_ms=0), sound)
    drifting = through(Room(echo_db=0, delay_ms=60, decay_ms=0, drift_ppm=200), sound)
    piece = still[18 * SAMPLE_RATE : 19 * SAMPLE_RATE]
    lags = range(-120, 121)
    begin = 18 * SAMPLE_RATE
    match = [float(np.dot(piece, drifting[begin + lag : begin + lag + piece.size])) for lag in lags]
    assert lags[int(np.argmax(match))] == pytest.approx(-200e-6 * 18.5 * SAMPLE_RATE, abs=8)
    assert drifting.size == still.size == sound.size // PLAYBACK_FRAME * FRAME
