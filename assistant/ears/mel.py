"""The log-mel picture of sound that Whisper looks at, kept up to date while an utterance grows."""

from __future__ import annotations

import functools

import numpy as np

HOP = 160
"""Samples from one mel frame to the next (10 ms at 16 kHz)."""

WINDOW = 400
"""Samples one mel frame looks at, centred on its time (25 ms)."""

DYNAMIC_RANGE = 8.0
"""Everything more than 80 dB below the loudest bin is one shade of black."""


def log_mel(pcm: np.ndarray, frames: int, n_mels: int = 80) -> np.ndarray:
    """float32 [n_mels, frames] of 16 kHz sound float32 [n], followed by silence up to `frames`.

    Sound beyond the last frame is not looked at. Equals the picture Whisper was trained on within 1e-4.
    """
    wanted = frames * HOP
    padded = np.zeros(wanted + WINDOW, np.float32)
    half = WINDOW // 2
    body = pcm[: wanted + half]
    padded[half : half + len(body)] = body
    # The first frames see the beginning mirrored, as in training.
    mirror = padded[half + 1 : WINDOW + 1][:half]
    padded[:half] = mirror[::-1]
    # Frames past the sound are all silence: their spectrum is known without a transform.
    sounding = min(frames, (len(body) + half) // HOP + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:sounding]
    spectrum = np.fft.rfft(windows * _hann(), axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    energy = np.full((n_mels, frames), 1e-10, np.float32)
    energy[:, :sounding] = mel_filters(n_mels) @ power.T
    picture = np.log10(np.maximum(energy, 1e-10, out=energy), out=energy)
    np.maximum(picture, picture.max() - DYNAMIC_RANGE, out=picture)
    return (picture + 4.0) / 4.0


@functools.cache
def mel_filters(n_mels: int) -> np.ndarray:
    """float32 [n_mels, 201]: triangles on the mel scale (linear to 1 kHz, then logarithmic), unit area."""
    bins = np.fft.rfftfreq(WINDOW, 1 / 16_000)
    edges = _hertz(np.linspace(0, _mel(8000.0), n_mels + 2))
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


_LINEAR = 200.0 / 3
_KNEE = 1000.0
_STEP = np.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    return hertz / _LINEAR if hertz < _KNEE else _KNEE / _LINEAR + float(np.log(hertz / _KNEE)) / _STEP


def _hertz(mel: np.ndarray) -> np.ndarray:
    knee = _KNEE / _LINEAR
    return np.where(mel < knee, mel * _LINEAR, _KNEE * np.exp(_STEP * np.maximum(0, mel - knee)))


@functools.cache
def _hann() -> np.ndarray:
    return np.hanning(WINDOW + 1)[:-1].astype(np.float32)
