"""What to make of words spoken over the assistant: stop, go on, or wait for more of them.

Pure functions. "mm-hmm" must neither stop the answer nor be answered; "stop" must stop it at once, even as a word
of a quarter of a second; a cough has no words at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Reaction(Enum):
    """The verdict on overlapping speech."""

    WAIT = "wait"
    STOP = "stop"
    GO_ON = "go_on"


BACKCHANNELS = frozenset(
    "ah aha alright cool exactly fine good great ha haha hm hmm huh indeed interesting mhm mhmm mm mmhm mmm mm-hm "
    "mm-hmm mmm-hmm nice oh okay ok really right sure true uh uh-huh uh-uh uhhuh uhm um umm wow yeah yep yes "
    "yup".split()
) | {"i see", "got it", "go on", "makes sense", "of course", "mm hmm", "mm hm", "uh huh", "uh uh"}
STOP_WORDS = frozenset("stop wait no hold pause quiet enough silence cancel shut hang sorry but actually what".split())

HALTS = frozenset(
    {"stop", "stop it", "stop that", "stop talking", "stop now", "please stop", "stop please", "be quiet", "quiet",
     "silence", "enough", "that's enough", "shut up", "hush", "cancel", "okay stop", "no stop"}
)  # fmt: skip
"""Said over the assistant, these are obeyed by being silent: there is nothing in them to answer."""


@dataclass(frozen=True)
class OverlapRules:
    """Thresholds of a barge-in. Durations in samples at 16 kHz."""

    min_words: int = 1
    """New words that stop the assistant; 1 = easy to interrupt, 3 = hard."""
    decide_after: int = 5_600
    """Speech before unfinished words stop the assistant, unless they are `stop_words` (350 ms). The first transcripts
    of a word are guesses ("I" for "I see"); it is silent by then anyway."""
    hold_after: int = 4_480
    """Speech over the assistant that silences it until it is understood (280 ms)."""
    give_up: int = 24_000
    """Silence after which an overlap that was never transcribed is forgotten."""
    backchannel_at_most: int = 19_200
    """A backchannel longer than this is a turn ("yes", drawn out and repeated)."""
    backchannels: frozenset[str] = BACKCHANNELS
    stop_words: frozenset[str] = STOP_WORDS


_WORD = re.compile(r"[\w'’-]+", re.UNICODE)


def plain_words(text: str) -> tuple[str, ...]:
    """Lower-case words of `text` without punctuation: what two transcripts are compared by."""
    return tuple(word.strip("-'’") for word in _WORD.findall(text.lower()) if word.strip("-'’"))


def same_words(first: str, second: str) -> bool:
    """Whether two transcripts differ at most in case and punctuation."""
    return plain_words(first) == plain_words(second)


def is_backchannel(text: str, rules: OverlapRules = OverlapRules()) -> bool:
    """Whether `text` consists of nothing but listening noises: "uh-huh", "right, I see"."""
    words = plain_words(text)
    position = 0
    while position < len(words):
        for size in (2, 1):
            if " ".join(words[position : position + size]) in rules.backchannels:
                position += size
                break
        else:
            return False
    return bool(words)


def is_halt(text: str) -> bool:
    """Whether `text` asks for silence and for nothing else: "Stop!", "Stop, stop it.", "Be quiet."."""
    words = plain_words(text)
    distinct = [word for place, word in enumerate(words) if place == 0 or word != words[place - 1]]
    return " ".join(words) in HALTS or " ".join(distinct) in HALTS


def classify(text: str, spoken: int, *, complete: bool, rules: OverlapRules = OverlapRules()) -> Reaction:
    """Verdict on `text` said over the assistant for `spoken` samples; `complete`: no more of it is coming."""
    words = plain_words(text)
    if not words:
        return Reaction.GO_ON if complete else Reaction.WAIT
    if not complete and words[0] not in rules.stop_words and spoken < rules.decide_after:
        return Reaction.WAIT
    if is_backchannel(text, rules):
        if spoken > rules.backchannel_at_most:
            return Reaction.STOP
        return Reaction.GO_ON if complete else Reaction.WAIT
    if words[0] in rules.stop_words or len(words) >= rules.min_words:
        return Reaction.STOP
    return Reaction.GO_ON if complete else Reaction.WAIT
