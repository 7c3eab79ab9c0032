"""Another sample rate, block by block, gives what the whole at once gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.audio.errors import AudioError
from assistant.audio.resample import FileResampler, StreamResampler, resample

SOUND = np.random.default_rng(3).uniform(-0.5, 0.5, 9_000).astype(np.float32)


RATES = [(48_000, 16_000), (44_100, 16_000), (8_000, 16_000), (22_050, 24_000), (24_000, 48_000), (16_000, 16_000)]


def streamed(kind: type[FileResampler | StreamResampler], rates: tuple[int, int], cuts: list[int]) -> np.ndarray:
    stream = kind(*rates)
    parts = [stream.push(block) for block in np.split(SOUND, sorted(cuts))]
    return np.concatenate([*parts, stream.finish()])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([StreamResampler, FileResampler]),
    st.sampled_from(RATES),
    st.lists(st.integers(0, len(SOUND)), max_size=8),
)
def test_the_cuts_do_not_show(kind, rates, cuts):
    whole = streamed(kind, rates, [])
    assert abs(len(whole) - len(SOUND) * rates[1] / rates[0]) <= 1
    assert np.array_equal(streamed(kind, rates, cuts), whole)


@pytest.mark.parametrize("rates", [pair for pair in RATES if pair[0] != pair[1]])
def test_a_tone_keeps_its_shape_and_its_place(rates):
    stream = StreamResampler(*rates)
    tone = np.sin(2 * np.pi * 1000 * np.arange(rates[0]) / rates[0]).astype(np.float32)
    out = np.concatenate([stream.push(tone), stream.finish()])
    wanted = np.sin(2 * np.pi * 1000 * np.arange(len(out)) / rates[1])
    assert np.abs(out - wanted)[200:-200].max() < 1e-4  # 80 dB down


@pytest.mark.parametrize("hertz", [9_000, 11_000, 15_000, 20_000])
def test_what_does_not_fit_is_filtered_out(hertz):
    stream = StreamResampler(48_000, 16_000)
    out = stream.push(np.sin(2 * np.pi * hertz * np.arange(48_000) / 48_000).astype(np.float32))
    assert np.abs(out[200:]).max() < 2e-4


def test_a_finished_stream_starts_anew():
    stream = StreamResampler(48_000, 16_000)
    first = np.concatenate([stream.push(SOUND), stream.finish()])
    assert np.array_equal(np.concatenate([stream.push(SOUND), stream.finish()]), first)


@pytest.mark.parametrize("rates", RATES)
def test_the_delay_is_two_milliseconds_at_most(rates):
    stream = StreamResampler(*rates)
    block = rates[0] // 100
    fed = produced = 0
    for _ in range(50):
        fed += block
        produced += len(stream.push(np.zeros(block, np.float32)))
        assert fed / rates[0] - produced / rates[1] < 0.002


def test_whole_signals_and_bad_rates():
    assert len(resample(SOUND, 48_000, 16_000)) == 3_000
    assert np.array_equal(resample(SOUND, 16_000, 16_000), SOUND)
    with pytest.raises(AudioError, match="must be positive"):
        StreamResampler(0, 16_000)
