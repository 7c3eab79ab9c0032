"""Cues as sound, and where in them somebody speaks."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.wav import write_wav
from assistant.scenarios.format import Cue, ScenarioError, Sound
from assistant.scenarios.recordings import ASTERISK, MissingVoice, asterisk_texts, recording
from assistant.scenarios.speakers import Speakers, bed, espeak, speech_spans, split_pauses, with_gap

needs_espeak = pytest.mark.skipif(not shutil.which("espeak-ng"), reason="needs espeak-ng")


def voice_like(seconds: float) -> np.ndarray:
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (0.3 * np.sin(2 * np.pi * 180 * t)).astype(np.float32)


def nothing(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)


def test_pause_marks() -> None:
    assert split_pauses("five [0.8] six") == ("five six", [(4, 0.8)])
    assert split_pauses("no marks") == ("no marks", [])
    assert split_pauses("a [1] b, [0.25] c.") == ("a b, c.", [(1, 1.0), (4, 0.25)])


def test_spans_are_the_stretches_of_speech() -> None:
    sound = np.concatenate([nothing(0.2), voice_like(1.0), nothing(0.5), voice_like(0.4), nothing(0.3)])
    assert speech_spans(sound) == ((3_200, 19_200), (27_200, 33_600))
    assert speech_spans(nothing(1.0)) == ()
    short = np.concatenate([voice_like(0.3), nothing(0.1), voice_like(0.3)])
    assert speech_spans(short) == ((0, 11_200),)


def test_a_gap_adds_silence_and_loses_nothing() -> None:
    sound = voice_like(1.0)
    longer = with_gap(sound, 8_000, 0.5)
    assert longer.size == sound.size + 8_000
    assert not longer[8_000:16_000].any()
    assert np.array_equal(longer[200:7_800], sound[200:7_800])


def test_a_recording_with_a_part_and_a_gap(tmp_path) -> None:
    write_wav(tmp_path / "me.wav", np.concatenate([nothing(0.5), voice_like(2.0), nothing(0.5)]), SAMPLE_RATE)
    cue = Cue(say="hello you", recording="me.wav", part=(0.0, 2.5), gaps=((1.5, 0.7),), level_db=-20)
    spoken = Speakers(folder=tmp_path).render(cue)
    (first, end), (again, last) = spoken.spans
    assert (again - end) / SAMPLE_RATE == pytest.approx(0.7, abs=0.03)
    level = np.concatenate([spoken.pcm[first:end], spoken.pcm[again:last]])
    assert 20 * np.log10(np.sqrt(np.mean(level**2))) == pytest.approx(-20, abs=0.3)


@needs_espeak
def test_espeak_pauses_where_it_is_told_to() -> None:
    spoken = Speakers().render(Cue(say="What is the [0.9] capital of France?", voice="espeak:en-us"))
    assert spoken.text == "What is the capital of France?"
    gaps = [(b[0] - a[1]) / SAMPLE_RATE for a, b in zip(spoken.spans, spoken.spans[1:], strict=False)]
    assert any(gap == pytest.approx(0.9, abs=0.15) for gap in gaps)
    assert espeak("Hello.", "en-us") is espeak("Hello.", "en-us")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingVoice, match="Piper"):
        Speakers().render(Cue(say="Hi.", voice="joe"))
    with pytest.raises(MissingVoice, match="not on this machine"):
        recording("codec2:no-such-voice")
    with pytest.raises(ScenarioError, match="no voice 'anna'"):
        Speakers().render(Cue(say="Hi.", voice="anna"))


@pytest.mark.skipif(not ASTERISK.is_dir(), reason="needs asterisk-core-sounds-en-wav")
def test_asterisk_prompts_and_their_texts() -> None:
    assert asterisk_texts()["vm-savefolder"] == "Which folder should I save the message to?"
    assert 1.5 < recording("asterisk:vm-savefolder").size / SAMPLE_RATE < 3.5


@pytest.mark.parametrize("sound", list(Sound))
def test_every_sound_can_be_made_and_laid_under(sound: Sound) -> None:
    made = Speakers().render(Cue(sound=sound, seconds=1.0, level_db=-20))
    assert made.pcm.size > 1_000 and np.abs(made.pcm).max() <= 1.0 and made.text == ""
    assert bed(sound, -40.0).size > 0
