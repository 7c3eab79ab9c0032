"""A real voice: sound, its timing, and what it does with texts of all kinds."""

import threading
from pathlib import Path

import numpy as np
import pytest

from voices import Speech, Voice, VoiceError, speakable


@pytest.fixture(scope="module")
def voice(piper_path: Path) -> Voice:
    return Voice.load(piper_path)


TEXTS = [
    "Sure.",
    "Dr. Sharma paid $3.50 at 9:30 a.m. in the U.S. capital.",
    "Do not go to the end of the day, in the house of the man.",  # the phonemiser joins short words
    "Hello! Is it you? I think so: yes, it is.",  # four sentences for the phonemiser
    "The GPUs are 5 km away, mm-hm, and I got an A.",
    "**Call** (555) 123-4400 or mail a@b.com - `x == y`!",
    "Wait... what — is (this) \"it\"?",
    "naïve café 中文 привет",
    "NASA, the FBI and 1,234,567 people; 12% of A/B tests",
    "I",
    "A dog.",
    "1",
    "\"\"quotes\"\" 'n' such",
    "x" * 60,
]  # fmt: skip


def check(speech: Speech, text: str) -> None:
    """The timing covers the sound without a gap and has every word that is said."""
    assert speech.pcm.dtype == np.float32
    assert np.abs(speech.pcm).max() <= 1.0
    said = speakable(text).words
    assert [(w.start_char, w.end_char) for w in speech.words] == [(w.start, w.end) for w in said]
    assert speech.words[0].start_sample == 0
    assert speech.words[-1].end_sample == len(speech.pcm)
    for word in speech.words:
        assert word.start_sample <= word.quiet_sample <= word.end_sample
    for a, b in zip(speech.words, speech.words[1:], strict=False):
        assert a.end_sample == b.start_sample


@pytest.mark.parametrize("text", TEXTS)
def test_words_cover_the_sound(voice: Voice, text: str) -> None:
    check(voice.synthesize(text), text)


@pytest.mark.parametrize("text", TEXTS[1:6])
def test_words_of_plain_sound_have_a_plausible_length(voice: Voice, text: str) -> None:
    speech = voice.synthesize(text)
    for word in speech.words:
        seconds = (word.sound_end - word.start_sample) / speech.sample_rate
        assert 0.03 < seconds < 1.2, (text[word.start_char : word.end_char], seconds)


@pytest.mark.parametrize("text", ["", "...", "—", "😊", "**", "\n", "?!"])
def test_unspeakable_text_is_silence_of_no_length(voice: Voice, text: str) -> None:
    speech = voice.synthesize(text)
    assert len(speech.pcm) == 0
    assert speech.words == ()
    assert list(voice.stream(text)) == []
    assert speech.heard_chars(0) == 0


@pytest.mark.parametrize("text", [TEXTS[1], TEXTS[3], "Sure."])
def test_the_stream_is_the_same_sound_in_stretches(voice: Voice, text: str) -> None:
    whole = voice.synthesize(text)
    pieces = list(voice.stream(text, first_frames=20))
    assert len(pieces) > 1
    assert pieces[0].start == 0
    for a, b in zip(pieces, pieces[1:], strict=False):
        assert b.start == a.start + len(a.pcm)
    np.testing.assert_allclose(np.concatenate([p.pcm for p in pieces]), whole.pcm, atol=1e-4)
    words = [w for p in pieces for w in p.words]
    assert words[:-1] == list(whole.words[:-1])
    assert words[-1].quiet_sample == whole.words[-1].quiet_sample
    for piece in pieces:
        assert all(piece.start <= w.start_sample <= piece.start + len(piece.pcm) for w in piece.words)


def test_closing_the_stream_stops_the_work(voice: Voice) -> None:
    stream = voice.stream(TEXTS[1])
    next(stream)
    stream.close()
    assert list(stream) == []


def test_the_same_text_sounds_the_same_from_any_thread(voice: Voice) -> None:
    texts = ["Hello there.", "What is it?", "The end of the day."]
    alone = [voice.synthesize(t).pcm for t in texts]
    results: dict[int, np.ndarray] = {}

    def speak(index: int) -> None:
        results[index] = voice.synthesize(texts[index % 3]).pcm

    threads = [threading.Thread(target=speak, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(6):
        np.testing.assert_array_equal(results[index], alone[index % 3])


def test_seed_and_variation(voice: Voice) -> None:
    one, two = voice.synthesize("Hello there."), voice.synthesize("Hello there.", seed=1)
    assert not np.array_equal(one.pcm, two.pcm)
    flat = [voice.synthesize("Hello there.", variation=0.0, seed=s).pcm for s in (0, 1)]
    np.testing.assert_array_equal(flat[0], flat[1])


def test_speed(voice: Voice) -> None:
    text = "This is a sentence of some length."
    usual, fast = voice.synthesize(text), voice.synthesize(text, speed=1.6)
    assert 1.3 < usual.seconds / fast.seconds < 1.9
    check(fast, text)
    with pytest.raises(VoiceError, match="between"):
        voice.synthesize("Hello", speed=0)


def test_sound_begins_at_once_and_pauses_are_short(voice: Voice) -> None:
    speech = voice.synthesize("Sure, here it is", continues=True)
    loud = np.flatnonzero(np.abs(speech.pcm) > 0.01)
    assert loud[0] < 0.03 * speech.sample_rate
    assert len(speech.pcm) - loud[-1] < 0.2 * speech.sample_rate


def test_words_sound_where_the_timing_says(voice: Voice) -> None:
    """Between two words with a comma there is silence; within a word there is none."""
    speech = voice.synthesize("Monday, Tuesday, Wednesday.")
    for word in speech.words[:-1]:
        middle = speech.pcm[word.start_sample + 500 : word.sound_end - 500]
        assert np.sqrt(np.mean(middle**2)) > 0.02
    pause = speech.pcm[speech.words[0].sound_end : speech.words[0].end_sample]
    assert np.sqrt(np.mean(pause[len(pause) // 2 :] ** 2)) < 0.05


def test_all_is_heard_at_the_end(voice: Voice) -> None:
    text = "Well done! 😊"
    speech = voice.synthesize(text)
    assert speech.heard_chars(len(speech.pcm)) == len(text)
    assert speech.heard_chars(0) == 0
    assert text[: speech.heard_chars(speech.words[0].end_sample)] == "Well"


def test_a_missing_voice_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match="crosstalk models pull"):
        Voice.load(tmp_path / "no.onnx")


def test_a_broken_voice_says_what_to_do(tmp_path: Path, piper_path: Path) -> None:
    model = tmp_path / "bad.onnx"
    model.write_bytes(b"this is not a network")
    settings = tmp_path / "bad.onnx.json"
    settings.write_text("{}")
    with pytest.raises(VoiceError, match="does not describe"):
        Voice.load(model)
    settings.write_bytes(Path(f"{piper_path}.json").read_bytes())
    with pytest.raises(VoiceError, match="not a voice model"):
        Voice.load(model)
