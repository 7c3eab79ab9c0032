"""The synthesised sounds are what they are called, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.audio import noise
from assistant.audio.constants import SAMPLE_RATE

STEADY = {"white": noise.white, "pink": noise.pink, "hum": noise.hum, "office": noise.office}
EVENTS = {"keyboard": lambda: noise.keyboard(3), "chime": noise.chime, "cough": noise.cough, "door": noise.door}


@pytest.mark.parametrize("name", STEADY)
def test_steady_sounds_have_the_level_asked_for(name):
    pcm = STEADY[name](3.0, level_db=-30.0)
    assert len(pcm) == 3 * SAMPLE_RATE
    assert 10 * np.log10(np.mean(pcm**2)) == pytest.approx(-30, abs=0.6)


@pytest.mark.parametrize("name", EVENTS)
def test_events_have_sound_and_fit_the_scale(name):
    pcm = EVENTS[name]()
    assert pcm.dtype == np.float32
    assert 0.1 < np.abs(pcm).max() <= 1


def test_seeds_decide():
    assert np.array_equal(noise.keyboard(2, seed=4), noise.keyboard(2, seed=4))
    assert not np.array_equal(noise.keyboard(2, seed=4), noise.keyboard(2, seed=5))


def test_colours():
    def octave_ratio(pcm: np.ndarray) -> float:
        power = np.abs(np.fft.rfft(pcm)) ** 2
        hertz = np.fft.rfftfreq(len(pcm), 1 / SAMPLE_RATE)
        low = power[(hertz > 500) & (hertz < 1000)].mean()
        return float(10 * np.log10(low / power[(hertz > 1000) & (hertz < 2000)].mean()))

    assert octave_ratio(noise.white(10)) == pytest.approx(0, abs=0.5)
    assert octave_ratio(noise.pink(10)) == pytest.approx(3, abs=0.5)
