"""Is the user's turn over? How much silence to wait for, from what was said.

Pure functions. Silence alone is slow for the finished and rude to the unfinished, so the wait follows the words: the
engine's own probability that a whole turn was said (the logit row after the prefilled words), the transcript's
punctuation, and words after which nobody stops ("the", "and", "um", a digit of a longer number).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assistant.overlap import plain_words

MS = 16
"""Samples of the microphone clock in a millisecond."""

_DANGLING = frozenset(
    "a an the and or but so because if when while that which who whose to of in on at for from with by about into "
    "my your his her its our their this these those is are was were be am can could will would should i i'd i'm "
    "you're we're they're it's um uh er erm hmm like than as very really also not how what's let's want "
    "need have".split()
)
_DIGITS = frozenset("zero oh one two three four five six seven eight nine ten double triple".split())
_DICTATED = frozenset("number code pin phone zip account postcode extension".split())
_ONE_WORD_TURNS = frozenset(
    "yes no yeah yep nope ok okay stop sure thanks hello hi hey bye goodbye maybe please".split()
)
_OPENERS = _ONE_WORD_TURNS | frozenset("wait well actually sorry listen alright right so there excuse me oh".split())


@dataclass(frozen=True)
class EndpointRules:
    """How patient to be. Durations in samples at 16 kHz; `patience` scales them all (1 = normal)."""

    sure: int = 200 * MS
    """Silence that ends a turn whose words are finished beyond doubt."""
    opener: int = 420 * MS
    """Silence that ends one or two words that are a whole turn as well as the beginning of one ("No,", "Wait,",
    "Hello there,"): people pause 250 to 380 ms behind them."""
    normal: int = 550 * MS
    """Silence that ends a turn nobody can judge."""
    unfinished: int = 1_500 * MS
    """Silence that ends a turn whose words want to go on."""
    sure_above: float = 0.8
    unsure_below: float = 0.2
    patience: float = 1.0
    give_up: int = 6_000 * MS
    """Silence after which an utterance that was never transcribed is forgotten."""


@dataclass(frozen=True)
class Calibration:
    """From the engine's log-odds of "the next token ends the turn" to the probability that it is over, per model."""

    slope: float = 1.0
    offset: float = 2.0


def calibrated(log_odds: float, calibration: Calibration = Calibration()) -> float:
    """Logistic regression of `log_odds`: probability in (0, 1)."""
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, calibration.slope * log_odds + calibration.offset))))


@dataclass(frozen=True)
class Evidence:
    """What is known about the words so far. `finished`: the engine's probability of a whole turn, if it was asked."""

    text: str
    finished: float | None = None


def _opener(text: str) -> bool:
    words = plain_words(text)
    return 0 < len(words) <= 2 and _OPENERS.issuperset(words) and not text.strip().endswith("?")


def _within_a_number(words: tuple[str, ...]) -> bool:
    """Whether the words end in the middle of a number that is being dictated: "my number is five five five"."""
    digits = [word in _DIGITS or word.replace("-", "").isdigit() for word in words[-2:]]
    return digits[-1] and (all(digits) and len(digits) == 2 or not _DICTATED.isdisjoint(words))


def finishedness(evidence: Evidence) -> float:
    """Probability in [0, 1] that the turn is over, from words, punctuation and the engine's opinion."""
    text = evidence.text.strip()
    words = plain_words(text)
    if not words:
        return 0.5
    if text.endswith(("...", "…", ",", "-", "—")):
        return 0.05
    last = words[-1]
    if len(words) == 1 and last in _ONE_WORD_TURNS:
        return 0.95
    if last in _DANGLING and not text.endswith("?"):
        return 0.05
    if not text.endswith("?") and _within_a_number(words):
        return 0.1 if evidence.finished is None else min(evidence.finished, 0.15)
    closed = text.endswith((".", "!", "?"))
    if evidence.finished is None:
        # The engine's opinion is on its way and mostly decides: "Could you tell me?" is a question to the transcriber.
        return 0.6 if text.endswith("?") else 0.5 if closed else 0.3
    # The engine scores the words with their punctuation taken off; a question mark is the transcriber's own evidence
    # (it heard the melody), a full stop is its habit.
    bonus = 0.15 if text.endswith("?") else 0.0 if closed else -0.2
    return min(1.0, max(0.0, evidence.finished + bonus))


def required_silence(evidence: Evidence, rules: EndpointRules = EndpointRules()) -> int:
    """Samples of silence after which the turn counts as over: `sure` … `normal` … `unfinished`, interpolated."""
    p = finishedness(evidence)
    if p >= rules.sure_above:
        wait = float(rules.sure)
    elif p <= rules.unsure_below:
        wait = float(rules.unfinished)
    else:
        middle = (rules.sure_above + rules.unsure_below) / 2
        low, high = (rules.normal, rules.sure) if p >= middle else (rules.unfinished, rules.normal)
        start = middle if p >= middle else rules.unsure_below
        width = (rules.sure_above - rules.unsure_below) / 2
        wait = low + (high - low) * (p - start) / width
    if _opener(evidence.text):
        wait = max(wait, rules.opener)
    return round(wait * rules.patience)
