"""Synthesised sounds that are not speech, for tests and benchmarks: every one seeded.

Each function returns float32 [round(seconds * rate)] in [-1, 1]. `level_db` is the RMS level below full
scale for steady sounds, and the peak level for events. They stand in for recordings whose licences do
not allow shipping; the shapes (spectrum, attack, decay, rhythm) are the part a detector reacts to.
"""

from __future__ import annotations

import numpy as np

from assistant.audio.constants import SAMPLE_RATE


def silence(seconds: float, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Digital zeros."""
    return np.zeros(round(seconds * rate), np.float32)


def white(seconds: float, level_db: float = -40.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Equal power at every frequency: a hiss."""
    return _at_rms(np.random.default_rng(seed).standard_normal(round(seconds * rate)), level_db)


def pink(seconds: float, level_db: float = -35.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Power falling 3 dB an octave: wind, rain, ventilation."""
    count = round(seconds * rate)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    return _at_rms(np.fft.irfft(spectrum, count), level_db)


def hum(seconds: float, level_db: float = -30.0, mains: float = 50.0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Mains hum: a fundamental and its harmonics with slow beating."""
    t = np.arange(round(seconds * rate)) / rate
    wave = np.sum([np.sin(2 * np.pi * mains * k * t + k) / k for k in (1, 2, 3, 4, 6, 8, 12)], axis=0)
    return _at_rms(wave * (1 + 0.1 * np.sin(2 * np.pi * 0.7 * t)), level_db)


def keyboard(seconds: float, level_db: float = -14.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Somebody typing: a click down and a softer one up, five to nine keys a second, with rests."""
    random = np.random.default_rng(seed)
    out = np.zeros(round(seconds * rate))
    at = 0.1
    while at < seconds - 0.2:
        loud = random.uniform(0.5, 1.0)
        _add(out, loud * _click(random, rate), at, rate)
        _add(out, 0.4 * loud * _click(random, rate), at + random.uniform(0.06, 0.1), rate)
        at += random.uniform(0.11, 0.2) if random.random() > 0.06 else random.uniform(0.5, 1.2)
    return _at_peak(out, level_db)


def chime(seconds: float = 1.5, level_db: float = -12.0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """A doorbell's two tones, each a struck bar with inharmonic partials."""
    out = np.zeros(round(seconds * rate))
    for at, base in ((0.05, 660.0), (0.55, 523.0)):
        t = np.arange(max(0, len(out) - round(at * rate))) / rate
        bar = np.sum([a * np.sin(2 * np.pi * base * p * t) * np.exp(-t * d) for a, p, d in _PARTIALS], axis=0)
        _add(out, bar, at, rate)
    return _at_peak(out, level_db)


def cough(level_db: float = -8.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """0.5 s: an explosive burst of broad noise, then a weaker, voiced tail."""
    random = np.random.default_rng(seed)
    t = np.arange(round(0.5 * rate)) / rate
    burst = random.standard_normal(len(t)) * _envelope(t, 0.004, 0.09)
    pitch = 2 * np.pi * np.cumsum(180 - 120 * t) / rate
    tail = (np.sign(np.sin(pitch)) * 0.4 + random.standard_normal(len(t)) * 0.5) * _envelope(t - 0.14, 0.02, 0.1)
    return _at_peak(_smooth(burst + 0.6 * tail, 5), level_db)


def door(level_db: float = -8.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """0.6 s: a latch click, then a low thump that rings."""
    random = np.random.default_rng(seed)
    t = np.arange(round(0.6 * rate)) / rate
    thump = (np.sin(2 * np.pi * 75 * t) + 0.5 * np.sin(2 * np.pi * 132 * t)) * _envelope(t - 0.08, 0.003, 0.12)
    rattle = _smooth(random.standard_normal(len(t)), 9) * _envelope(t - 0.08, 0.002, 0.05)
    out = thump + 0.8 * rattle
    _add(out, 0.5 * _click(random, rate), 0.02, rate)
    return _at_peak(out, level_db)


def office(seconds: float, level_db: float = -34.0, seed: int = 0, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Ventilation, hum, distant typing and now and then a thump: a room with nobody speaking."""
    random = np.random.default_rng(seed)
    out = pink(seconds, -20, seed, rate) + hum(seconds, -32, rate=rate) + keyboard(seconds, -16, seed + 1, rate)
    for at in np.arange(2.0, seconds - 1, 4.0):
        _add(out, 0.15 * door(0, int(random.integers(1 << 30)), rate), float(at), rate)
    return _at_rms(out, level_db)


_PARTIALS = ((1.0, 1.0, 3.0), (0.5, 2.76, 5.0), (0.25, 5.4, 9.0))


def _click(random: np.random.Generator, rate: int) -> np.ndarray:
    t = np.arange(round(0.03 * rate)) / rate
    tone = np.sin(2 * np.pi * random.uniform(1500, 4000) * t)
    return (0.7 * random.standard_normal(len(t)) + tone) * _envelope(t, 0.0005, random.uniform(0.003, 0.008))


def _envelope(t: np.ndarray, attack: float, decay: float) -> np.ndarray:
    """Zero before t = 0, up within `attack` seconds, then exponential decay."""
    late = np.maximum(t, 0)
    return np.where(t < 0, 0.0, np.minimum(1, late / attack) * np.exp(-late / decay))


def _smooth(wave: np.ndarray, width: int) -> np.ndarray:
    return np.convolve(wave, np.hanning(width + 2)[1:-1], mode="same")


def _add(out: np.ndarray, sound: np.ndarray, at: float, rate: int) -> None:
    start = round(at * rate)
    end = min(len(out), start + len(sound))
    if end > start:
        out[start:end] += sound[: end - start]


def _at_rms(wave: np.ndarray, level_db: float) -> np.ndarray:
    rms = float(np.sqrt(np.mean(wave**2))) if len(wave) else 0.0
    return np.clip(wave * (10 ** (level_db / 20) / max(rms, 1e-12)), -1, 1).astype(np.float32)


def _at_peak(wave: np.ndarray, level_db: float) -> np.ndarray:
    peak = float(np.abs(wave).max()) if len(wave) else 0.0
    return (wave * (10 ** (level_db / 20) / max(peak, 1e-12))).astype(np.float32)
