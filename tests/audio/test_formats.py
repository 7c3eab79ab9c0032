"""Sound files of any kind come in as 16 kHz mono; what cannot be read is said in one sentence."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.errors import SoundReadError
from assistant.audio.formats import frames_of, probe, read_sound, sound_blocks, sound_frames

TONE_HZ = 440.0


def tone(rate: int, seconds: float = 1.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * TONE_HZ * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


def pitch_of(pcm: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm))))
    return float(np.argmax(spectrum)) * SAMPLE_RATE / len(pcm)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_every_rate_keeps_length_and_pitch(tmp_path, rate, subtype):
    soundfile.write(tmp_path / "a.wav", tone(rate), rate, subtype=subtype)
    pcm = read_sound(tmp_path / "a.wav")
    assert pcm.dtype == np.float32
    assert abs(len(pcm) - SAMPLE_RATE) <= 1
    assert pitch_of(pcm) == pytest.approx(TONE_HZ, abs=2)
    assert np.abs(pcm[1000:-1000]).max() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("suffix", "subtype"),
    [("wav", "PCM_U8"), ("wav", "PCM_24"), ("wav", "PCM_32"), ("wav", "DOUBLE"), ("wav", "ULAW"), ("flac", "PCM_16"),
     ("ogg", "VORBIS"), ("aiff", "PCM_16"), ("au", "PCM_16")],
)  # fmt: skip
def test_every_format(tmp_path, suffix, subtype):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, tone(44_100), 44_100, subtype=subtype)
    pcm = read_sound(path)
    assert abs(len(pcm) - SAMPLE_RATE) <= 1
    assert pitch_of(pcm) == pytest.approx(TONE_HZ, abs=2)


@pytest.mark.parametrize("channels", [2, 3, 6])
def test_channels_are_mixed_down(tmp_path, channels):
    both = np.zeros((SAMPLE_RATE, channels), np.float32)
    both[:, 1] = tone(SAMPLE_RATE)
    soundfile.write(tmp_path / "a.wav", both, SAMPLE_RATE, subtype="FLOAT")
    assert np.abs(read_sound(tmp_path / "a.wav")).max() == pytest.approx(0.5 / channels, abs=0.001)


def test_float_beyond_full_scale_and_not_a_number_are_tamed(tmp_path):
    wild = np.array([0.0, 3.0, -7.0, np.nan, np.inf, 0.25] * 100, np.float32)
    soundfile.write(tmp_path / "a.wav", wild, SAMPLE_RATE, subtype="FLOAT")
    pcm = read_sound(tmp_path / "a.wav")
    assert np.isfinite(pcm).all()
    assert (pcm.min(), pcm.max()) == (-1.0, 1.0)


def test_probe_tells_before_decoding(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros((48_000, 2)), 48_000)
    info = probe(tmp_path / "a.wav")
    assert (info.sample_rate, info.channels, info.seconds, info.kind) == (48_000, 2, 1.0, "WAV PCM_16")


def _write_text(path):
    path.write_text("this is no sound, however long one reads it\n" * 100)


def _write_header_only(path):
    soundfile.write(path, np.zeros(0), SAMPLE_RATE)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "There is no file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (_write_text, "is not a sound file"),
        (_write_header_only, "without a single sample"),
        (lambda path: path.write_bytes(b"RIFF\x24\x00\x00\x00WAVE"), "not a sound file"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path, make, sentence):
    path = tmp_path / "a.wav"
    make(path)
    with pytest.raises(SoundReadError, match=sentence) as failure:
        read_sound(path)
    assert "\n" not in str(failure.value)
    assert str(path) in str(failure.value)


def test_a_truncated_file_gives_what_is_there(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(SAMPLE_RATE), SAMPLE_RATE)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(whole[: len(whole) // 2])
    assert 0.45 * SAMPLE_RATE < len(read_sound(tmp_path / "a.wav")) <= 0.5 * SAMPLE_RATE


def test_frames_are_exact_and_the_last_is_filled_up(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(44_100, 1.013), 44_100)
    frames = list(sound_frames(tmp_path / "a.wav"))
    assert {frame.shape for frame in frames} == {(FRAME,)}
    assert len(frames) == 51
    assert np.all(frames[-1][-80:] == 0)
    blocks = np.concatenate(list(sound_blocks(tmp_path / "a.wav")))
    assert np.array_equal(np.concatenate(frames)[: len(blocks)], blocks)


@given(st.lists(st.integers(0, 700), max_size=12))
def test_frames_of_blocks_lose_and_add_nothing(sizes):
    total = sum(sizes)
    counting = np.arange(1, total + 1, dtype=np.float32)
    blocks = np.split(counting, np.cumsum(sizes)[:-1]) if sizes else []
    frames = list(frames_of(iter(blocks)))
    joined = np.concatenate(frames) if frames else np.zeros(0)
    assert np.array_equal(joined[:total], counting)
    assert not joined[total:].any()
    assert len(joined) - total < FRAME


def test_an_hour_is_read_in_little_memory(tmp_path):
    path = tmp_path / "long.wav"
    with soundfile.SoundFile(path, "w", 8_000, 1) as file:
        for _ in range(360):
            file.write(np.zeros(80_000, np.float32))
    tracemalloc.start()
    count = sum(len(block) for block in sound_blocks(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert abs(count - 3600 * SAMPLE_RATE) <= 1
    assert peak < 2e6  # the whole would be 230 MB
