"""What the speech recogniser believes it heard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How much encoder window, and so how much time, a decode may take."""

    PARTIAL = "partial"
    """While the user speaks: the cheapest window, with the stable words given to the decoder."""
    FINAL = "final"
    """At the end of a turn: a window with room, from the first word."""
    FULL = "full"
    """The 30 s the model was trained on: the reference, and the way out of a loop."""


@dataclass(frozen=True)
class Hypothesis:
    """One decode of one piece of sound."""

    text: str
    """As the model writes it, with its punctuation; words given as a prefix are included."""
    no_speech_prob: float
    """The model's own probability that nobody spoke; unreliable alone in both directions."""
    avg_logprob: float
    """Mean natural logarithm of the probability of the new tokens."""
    looped: bool
    """Still repeats itself or ran into the token limit, after everything that was tried against it."""
    seconds: float
    """Length of the sound."""
    mode: Mode
    language: str = "en"
    window_s: float = 30.0
    """Encoder window that gave the text."""
    ends_at: float = 0.0
    """Second of the sound up to which the model says it has written."""
    redone: bool = False
    """A shorter window gave something doubtful first."""

    @property
    def words(self) -> tuple[str, ...]:
        return split_words(self.text)

    @property
    def silent(self) -> bool:
        """The model itself thinks that nobody spoke and that its text is worth nothing."""
        return self.no_speech_prob >= NO_SPEECH and self.avg_logprob < UNSURE


NO_SPEECH = 0.6
"""No-speech probability of silence: necessary, and alone not sufficient, to disbelieve a text."""

UNSURE = -1.0
"""Mean log-probability below which a text is doubtful."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}][^\s\w]*|[^\s{_UNSPACED}]+")


def split_words(text: str) -> tuple[str, ...]:
    """Words with their punctuation; scripts written without spaces give one word a character."""
    return tuple(_WORD.findall(text))


def join_words(words: tuple[str, ...] | list[str]) -> str:
    """Words back to text, the counterpart of `split_words`."""
    out = ""
    for word in filter(None, words):
        tight = not out or (_is_unspaced(word[0]) and _is_unspaced(out.rstrip("。、！？,.!?")[-1:]))
        out += word if tight else " " + word
    return out


def _is_unspaced(character: str) -> bool:
    return bool(character) and re.match(f"[{_UNSPACED}]", character) is not None
