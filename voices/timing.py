"""From samples played to letters heard.

All functions are pure. Samples count from the beginning of one clause's speech; letters are offsets in the
clause's own text, as the model wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby


@dataclass(frozen=True)
class WordTiming:
    """One spoken word: the letters it stands for and the samples in which it sounds.

    The words of a clause follow each other without a gap and cover its audio: the pause behind a word belongs to
    it. `quiet_sample` is where its own sound is over and that pause begins. Spoken words that stand for the same
    letters ("three", "dollars" for "$3") have equal `start_char`, `end_char`.
    """

    start_char: int
    end_char: int
    start_sample: int
    end_sample: int
    quiet_sample: int = -1  # -1: no pause behind it, the same as end_sample

    @property
    def sound_end(self) -> int:
        return self.end_sample if self.quiet_sample < 0 else self.quiet_sample


@dataclass(frozen=True)
class Phrase:
    """The spoken words of one written word."""

    start_char: int
    end_char: int
    start_sample: int
    sound_end: int


def phrases(words: Sequence[WordTiming]) -> Iterator[Phrase]:
    """The spoken words put together by the letters they stand for."""
    for (start, end), group in groupby(words, key=lambda w: (w.start_char, w.end_char)):
        spoken = list(group)
        yield Phrase(start, end, spoken[0].start_sample, spoken[-1].sound_end)


def heard_chars(words: Sequence[WordTiming], played_samples: int) -> int:
    """How many letters of the clause were heard when `played_samples` had been played.

    A written word counts as heard when at least half of its sound was played: less than that, nobody would
    recognise it; more, and a listener completes it. "$3.50" is one written word, so its dollars alone are not
    enough. The answer is the end of the last word heard, 0 if there is none; it never falls as more is played.

    >>> words = [WordTiming(0, 6, 0, 4000), WordTiming(7, 12, 4000, 10000)]
    >>> [heard_chars(words, n) for n in (0, 1999, 2000, 6999, 7000)]
    [0, 0, 6, 6, 12]
    """
    heard = 0
    if played_samples <= 0:
        return heard
    for phrase in phrases(words):
        if 2 * played_samples < phrase.start_sample + phrase.sound_end:
            break
        heard = phrase.end_char
    return heard


def char_at(words: Sequence[WordTiming], played_samples: int) -> int:
    """The first letter of the written word that sounds at this sample (for showing words as they are spoken)."""
    place = 0
    for phrase in phrases(words):
        if phrase.start_sample > played_samples:
            break
        place = phrase.start_char
    return place


def at_rate(words: Sequence[WordTiming], rate: int, wanted: int) -> tuple[WordTiming, ...]:
    """The same timing for audio resampled from `rate` to `wanted`."""

    def scaled(sample: int) -> int:
        return (sample * wanted + rate // 2) // rate

    return tuple(
        replace(
            w,
            start_sample=scaled(w.start_sample),
            end_sample=scaled(w.end_sample),
            quiet_sample=scaled(w.quiet_sample) if w.quiet_sample >= 0 else -1,
        )
        for w in words
    )
