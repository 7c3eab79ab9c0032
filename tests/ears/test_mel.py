"""Our log-mel picture is the one Whisper was trained on."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.ears.mel import log_mel, mel_filters


@pytest.fixture(scope="module")
def extractor():
    from faster_whisper.feature_extractor import FeatureExtractor

    return FeatureExtractor


@pytest.mark.parametrize("n_mels", [80, 128])
def test_filters(extractor, n_mels):
    assert np.abs(mel_filters(n_mels) - extractor(feature_size=n_mels).mel_filters).max() < 1e-6


@pytest.mark.parametrize(
    ("count", "frames"),
    [(16_000, 1000), (33_333, 700), (160_000, 1000), (1, 600), (0, 600), (300_000, 3000), (100, 600)],
)
def test_pictures(extractor, count, frames):
    pcm = (0.1 * np.random.default_rng(count).standard_normal(count)).astype(np.float32)
    # The reference wants the silence after the sound spelled out; frames past the window are not looked at.
    whole = np.concatenate([pcm, np.zeros(frames * 160 + 800, np.float32)])
    reference = extractor()(whole, padding=0)[:, :frames]
    ours = log_mel(pcm, frames)
    assert ours.shape == (80, frames)
    assert ours.dtype == np.float32
    assert np.abs(ours - reference).max() < 1e-4
