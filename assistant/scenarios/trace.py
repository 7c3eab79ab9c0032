"""What became of an answer's sound on its way out, frame by frame, found by comparing it with the original.

The player may play an answer as it is, duck it, fade it out, be silent and go on. So each frame of the output is the
original at some place times a straight ramp; where it is not, the place has jumped, and that is a fault.

    original |aaaa|bbbb|cccc|dddd|            output |aaaa|b\\  |    |bbbb|cccc|dddd|
    place     0    1    2    3                place    0    1    1    1    2    3
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_FRAME, PLAYBACK_RATE
from assistant.audio.resample import StreamResampler
from assistant.scenarios.sound import AIR
from voices import SpeechPiece, WordTiming, at_rate, heard_chars

FINE = 0.03
"""Share of a frame's power that may be left over when it is compared with the original."""
FAINT = 1e-3
"""Amplitude under which a frame says nothing about where it comes from."""
SEARCH = PLAYBACK_RATE * 2
"""Samples around the expected place in which a jump is looked for."""

STARVED = 8
"""Zeros at a frame's end from which on the rest of it was not there in time; a fade to nothing ends in one."""

Pcm = NDArray[np.float32]


@dataclass
class Take:
    """What a voice made of one text, at its own rate; samples count from the text's beginning."""

    rate: int
    pcm: Pcm
    words: tuple[WordTiming, ...] = ()


Takes = dict[str, dict[bool, Take]]
"""Of each text as it sounds when more follows, and as it sounds at an end."""


class Tape:
    """Stands in for a voice and keeps what it said; of several takes that should be alike the longest."""

    def __init__(self, voice: Any) -> None:
        self._voice = voice
        self.takes: Takes = {}

    def stream(self, text: str, **how: Any) -> Iterator[SpeechPiece]:
        """See `voices.Voice.stream`."""
        take = Take(self._voice.sample_rate, np.zeros(0, np.float32))
        alike, goes_on = self.takes.setdefault(text, {}), bool(how.get("continues"))
        for piece in self._voice.stream(text, **how):
            take.pcm = np.concatenate([take.pcm, piece.pcm])
            take.words += piece.words
            if goes_on not in alike or take.pcm.size > alike[goes_on].pcm.size:
                alike[goes_on] = take
            yield piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._voice, name)


@dataclass(frozen=True)
class Piece:
    """One frame of the output: which frame, from where in the original, at which level it began and ended."""

    frame: int
    place: int
    taken: int
    """Samples by which the answer got ahead."""
    gain: float
    gain_after: float

    @property
    def time(self) -> float:
        """Seconds at which it is in the air."""
        return self.frame * PLAYBACK_FRAME / PLAYBACK_RATE + AIR


@dataclass(frozen=True)
class Trace:
    """One answer as it was played."""

    pieces: tuple[Piece, ...]
    length: int
    """Samples of the original."""
    played: int
    """Samples of it that were in the air at full or ducked level."""
    jumps: tuple[int, ...]
    """Samples that were left out (positive) or repeated (negative), each time it happened."""

    @property
    def whole(self) -> bool:
        """Played to the end, not a sample left out or repeated."""
        return not self.jumps and self.length - self.played <= PLAYBACK_FRAME

    @property
    def likeness(self) -> tuple[int, int]:
        """Greater, the more of the output is explained by this original."""
        return sum(piece.taken for piece in self.pieces if piece.gain_after > 0), -len(self.jumps)

    def quieter_from(self, onset: float, level: float = 0.7) -> float | None:
        """When the level falls below `level` at or after `onset`."""
        for piece in self.pieces:
            if piece.time + PLAYBACK_FRAME / PLAYBACK_RATE <= onset:
                continue
            if piece.gain < level:
                return max(onset, piece.time)
            if piece.gain_after < level:
                share = (piece.gain - level) / (piece.gain - piece.gain_after)
                return max(onset, piece.time + share * PLAYBACK_FRAME / PLAYBACK_RATE)
        return None

    def silences(self) -> list[tuple[float, float]]:
        """[start, end) in seconds of each hold in the middle of the answer, the cut at its end included."""
        found: list[tuple[float, float]] = []
        since: float | None = None
        for piece in self.pieces:
            if piece.gain_after < 0.02:
                since = piece.time if since is None else since
            elif since is not None and piece.gain > 0.02:
                found.append((since, piece.time))
                since = None
        if since is not None:
            found.append((since, self.pieces[-1].time))
        return found


def trace(frames: NDArray[np.float32], first: int, last: int, original: Pcm) -> Trace:
    """Follow `original` (24 kHz) through output frames [first, last) of `frames` [n, 480]."""
    return _Follower(original).follow(frames, first, last)


class _Follower:
    def __init__(self, original: Pcm) -> None:
        self._original = original
        self._place = 0
        self._doubtful = 0
        """Samples of digital silence that were taken for the answer's own: perhaps it was held instead."""
        self._pieces: list[Piece] = []
        self._jumps: list[int] = []

    def follow(self, frames: NDArray[np.float32], first: int, last: int) -> Trace:
        for number in range(first, last):
            if self._place >= self._original.size:
                break
            self._take(number, frames[number])
        self._undo_last_fade()
        return Trace(tuple(self._pieces), self._original.size, self._place, tuple(self._jumps))

    def _take(self, number: int, frame: Pcm) -> None:
        expected = self._expected(self._place)
        if np.abs(frame).max() < FAINT:
            own = frame.any() and np.abs(expected).max() < 5 * FAINT or not expected.any()
            taken = expected.size if own else 0
            self._doubtful = self._doubtful + taken if own else 0
            gain = 1.0 if own else 0.0
            self._add(number, taken, gain, gain)
            return
        for back in (0, self._fade_length()):
            fit = ramp(frame, self._expected(self._place - back))
            if fit is not None:
                if back:
                    self._give_back(back)
                self._add(number, fit[2], fit[0], fit[1])
                self._doubtful = 0
                return
        self._jump(number, frame)

    def _fade_length(self) -> int:
        """Samples of a fade just before this: after a hold they are played once more."""
        for piece in reversed(self._pieces):
            if piece.taken and piece.gain_after < 0.02:
                return piece.taken
            if piece.gain_after >= 0.02:
                return 0
        return 0

    def _give_back(self, samples: int) -> None:
        self._place -= samples
        for index in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[index]
            if piece.taken:
                self._pieces[index] = Piece(piece.frame, piece.place, 0, piece.gain, piece.gain_after)
                return

    def _undo_last_fade(self) -> None:
        """A fade at the very end is a stop: the sound was on its way, it does not count as played."""
        if self._place < self._original.size and (back := self._fade_length()):
            self._give_back(back)

    def _jump(self, number: int, frame: Pcm) -> None:
        start = max(0, self._place - SEARCH)
        at = locate(frame, self._original[start : self._place + SEARCH])
        fit = ramp(frame, self._expected(start + at)) if at is not None else None
        if at is None or fit is None:
            self._add(number, 0, 0.0, 0.0)
            return
        moved = start + at - self._place
        if not -self._doubtful <= moved <= 0:
            self._jumps.append(moved)
        self._place = start + at
        self._doubtful = 0
        self._add(number, fit[2], fit[0], fit[1])

    def _expected(self, place: int) -> Pcm:
        return self._original[max(0, place) : max(0, place) + PLAYBACK_FRAME]

    def _add(self, number: int, taken: int, gain: float, gain_after: float) -> None:
        self._pieces.append(Piece(number, self._place, taken, gain, gain_after))
        self._place += taken


def ramp(frame: Pcm, expected: Pcm) -> tuple[float, float, int] | None:
    """(level at the start, at the end, samples) if `frame` is `expected` under a straight ramp, else None.

    A frame whose end is digital silence may hold only the beginning of `expected` (the next clause was not ready).
    """
    full = min(expected.size, frame.size)
    size = min(full, int(np.flatnonzero(frame)[-1]) + 1)
    if full < PLAYBACK_FRAME // 8:
        return None
    starved = full - size >= STARVED and np.abs(expected[size:full]).max() > FAINT
    length = size if starved else full
    there, heard = expected[:length].astype(np.float64), frame[:length].astype(np.float64)
    slope = np.arange(length) / PLAYBACK_FRAME
    basis = np.stack([there, there * slope], axis=1)
    weights, *_ = np.linalg.lstsq(basis, heard, rcond=None)
    left = float(np.square(heard - basis @ weights).sum())
    if left > FINE * float(np.square(heard).sum()) or weights[0] < -0.05:
        return None
    end = float(weights[0] + weights[1] * length / PLAYBACK_FRAME)
    return max(0.0, float(weights[0])), max(0.0, end), length


def locate(frame: Pcm, around: Pcm) -> int | None:
    """Where in `around` the sound of `frame` is, whatever its level; None if it is not there."""
    if around.size < frame.size:
        return None
    size = 1 << (around.size + frame.size).bit_length()
    product = np.fft.irfft(np.fft.rfft(around, size) * np.conj(np.fft.rfft(frame, size)), size)
    sums = np.concatenate([[0.0], np.cumsum(np.square(around, dtype=np.float64))])
    power = sums[frame.size :] - sums[: -frame.size]
    likeness = product[: power.size] / np.sqrt(np.maximum(power, 1e-9) * max(1e-9, float(np.square(frame).sum())))
    best = int(np.argmax(likeness))
    return best if likeness[best] > 0.9 else None


@dataclass(frozen=True)
class Original:
    """The sound of an answer's clauses as they were made, 24 kHz, with where each word lies."""

    sound: Pcm
    clauses: tuple[tuple[str, int, tuple[WordTiming, ...]], ...]
    """(text, first sample, words) of each clause."""

    def words_in(self, samples: int) -> int:
        """How many written words were heard when `samples` of the answer were in the air."""
        count = 0
        for text, start, words in self.clauses:
            count += len(text[: heard_chars(words, samples - start)].split())
        return count


def originals(clauses: tuple[str, ...], takes: Takes) -> list[Original]:
    """The sound that was made of `clauses`, up to one that an interruption left unspoken; empty if none was made.

    Which of two takes of the last clause was played is not known here: both are given.
    """
    there = list(itertools.takewhile(lambda text: takes.get(text), clauses))
    if not there:
        return []
    before = [takes[text].get(True) or takes[text][False] for text in there[:-1]]
    return [_joined(there, [*before, last]) for last in takes[there[-1]].values()]


def _joined(texts: list[str], takes: list[Take]) -> Original:
    sounds, parts, at = [], [], 0
    for text, take in zip(texts, takes, strict=True):
        resampler = StreamResampler(take.rate, PLAYBACK_RATE)
        sound = np.concatenate([resampler.push(take.pcm), resampler.finish()])
        parts.append((text, at, at_rate(take.words, take.rate, PLAYBACK_RATE)))
        sounds.append(sound)
        at += sound.size
    return Original(np.concatenate(sounds), tuple(parts))
