"""Effects colour the sound and leave its length alone; backchannels are soft."""

import sys
from pathlib import Path

import numpy as np
import pytest

from voices import Voice, VoiceError
from voices.backchannels import backchannels
from voices.effects import EFFECTS, Effects

RATE = 22050


@pytest.fixture(scope="module")
def voice(piper_path: Path) -> Voice:
    return Voice.load(piper_path)


@pytest.fixture(scope="module")
def sound(voice: Voice) -> np.ndarray:
    return voice.synthesize("The test will now begin.").pcm


def test_no_effect_changes_nothing_and_needs_no_library(monkeypatch: pytest.MonkeyPatch, sound: np.ndarray) -> None:
    monkeypatch.setitem(sys.modules, "pedalboard", None)
    effects = Effects([], RATE)
    assert effects.process(sound) is sound
    assert len(effects.tail()) == 0
    with pytest.raises(VoiceError, match="crosstalk-assistant\\[effects\\]"):
        Effects(["metallic"], RATE)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(VoiceError, match="did you mean 'metallic'"):
        Effects(["metalic"], RATE)


@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_is_heard_and_keeps_the_length(name: str, sound: np.ndarray) -> None:
    pytest.importorskip("pedalboard")
    effects = Effects([name], RATE)
    coloured = effects.process(sound)
    assert coloured.shape == sound.shape
    assert coloured.dtype == np.float32
    assert np.abs(coloured).max() <= 1.0
    rms, before = (float(np.sqrt(np.mean(x**2))) for x in (coloured, sound))
    assert 0.7 < rms / before < 1.4  # about as loud as without
    assert np.abs(coloured - sound).max() > 0.02
    assert len(effects.tail()) <= 1.5 * RATE


@pytest.mark.parametrize("name", EFFECTS)
def test_pieces_sound_like_the_whole(name: str, sound: np.ndarray) -> None:
    pytest.importorskip("pedalboard")
    whole = Effects([name], RATE).process(sound)
    effects = Effects([name], RATE)
    pieces = [effects.process(part) for part in np.split(sound, [7000, 7001, 20000])]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-3)


def test_words_stay_where_they_are(sound: np.ndarray) -> None:
    pytest.importorskip("pedalboard")
    coloured = Effects(["metallic"], RATE).process(sound)
    lags = np.arange(-400, 401)
    inner = slice(2000, len(sound) - 2000)
    envelope = np.convolve(np.abs(sound), np.ones(200) / 200, "same")
    other = np.convolve(np.abs(coloured), np.ones(200) / 200, "same")
    best = lags[np.argmax([np.dot(envelope[inner], np.roll(other, -lag)[inner]) for lag in lags])]
    assert abs(best) < 0.015 * RATE


def test_ringing_ends_with_reset(sound: np.ndarray) -> None:
    pytest.importorskip("pedalboard")
    effects = Effects(["hall"], RATE)
    effects.process(sound[:8000])
    effects.reset()
    assert len(effects.tail()) == 0
    effects.process(sound[:8000])
    assert len(effects.tail()) > 0


def test_backchannels_are_short_and_soft(voice: Voice) -> None:
    made = backchannels(voice)
    assert [b.text for b in made][:2] == ["mm-hm", "uh-huh"]
    loudness = np.sqrt(np.mean(voice.synthesize("I see.").pcm ** 2))
    for sound in made:
        assert 0.15 < len(sound.pcm) / sound.sample_rate < 1.0
        assert 0.2 < np.sqrt(np.mean(sound.pcm**2)) / loudness < 0.5
        assert abs(sound.pcm[0]) < 1e-3
        assert abs(sound.pcm[-1]) < 1e-3
    assert [b.text for b in backchannels(voice, ("go on",))] == ["go on"]
