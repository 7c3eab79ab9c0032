"""When the assistant speaks out of turn: cutting in for a reason, listening noises, breaking a long silence.

Pure functions and data. A persona gives the reasons; words, time or the engine's opinion trigger them; a threshold, a
budget and a cooldown keep them rare. Times are samples of the microphone clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from assistant.audio.constants import SAMPLE_RATE
from assistant.overlap import plain_words


class Eagerness(Enum):
    """How readily the assistant cuts in."""

    OFF = "off"
    RARE = "rare"
    EAGER = "eager"


@dataclass(frozen=True)
class Reason:
    """One reason to cut in, and the words it is done with.

    It applies when one of the phrases `hears` was said, when the user's turn has lasted `after` seconds, or, with
    `judged`, when the engine finds `say` the likelier next words than listening on.
    """

    name: str
    say: str
    hears: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    """Phrases that take the reason away again ("not Sydney")."""
    after: float | None = None
    judged: bool = False
    only_say: bool = False
    """Nothing follows `say`; otherwise the model goes on from it."""


@dataclass(frozen=True)
class InterjectionRules:
    """A persona's manners while the user speaks."""

    eagerness: Eagerness = Eagerness.OFF
    reasons: tuple[Reason, ...] = ()
    cooldown: int = 20 * SAMPLE_RATE
    per_ten_minutes: int = 6
    insist: bool = False
    """Go on although the user goes on too."""
    yield_after: int = SAMPLE_RATE
    """How long the user may go on before the assistant gives way (it never does if it insists)."""
    listening_noises: bool = False
    noises: tuple[str, ...] = ("Mm-hm.",)
    noise_after: int = 3 * SAMPLE_RATE
    """Speech since the last listening noise before there is another one."""
    noise_pause: int = SAMPLE_RATE // 4
    """Silence into which a listening noise falls."""

    @property
    def threshold(self) -> float:
        """Score a judged reason must reach."""
        return 0.5 if self.eagerness is Eagerness.EAGER else 2.0

    @property
    def grace(self) -> int:
        """Samples of the user's going on that do not stop an interjection."""
        return 60 * SAMPLE_RATE if self.insist else self.yield_after


@dataclass(frozen=True)
class Past:
    """What was interjected so far."""

    last: int | None = None
    times: tuple[int, ...] = ()
    used: frozenset[str] = frozenset()
    """Reasons already given in the open turn."""

    def after(self, reason: Reason, t: int) -> Past:
        """The past once `reason` was given at `t`."""
        return Past(t, (*self.times, t), self.used | {reason.name})

    def next_turn(self) -> Past:
        """The past as a new turn sees it."""
        return replace(self, used=frozenset())


def contains(text: str, phrase: str) -> bool:
    """Whether the words of `phrase` were said, in a row, case and punctuation apart."""
    words, wanted = plain_words(text), plain_words(phrase)
    size = len(wanted)
    return size > 0 and any(words[i : i + size] == wanted for i in range(len(words) - size + 1))


def allowed(past: Past, t: int, rules: InterjectionRules) -> bool:
    """Whether budget and cooldown permit an interjection at `t`."""
    if rules.eagerness is Eagerness.OFF:
        return False
    if past.last is not None and t - past.last < rules.cooldown:
        return False
    return sum(t - moment < 600 * SAMPLE_RATE for moment in past.times) < rules.per_ten_minutes


def choose(
    text: str, spoken: int, scores: Mapping[str, float], past: Past, t: int, rules: InterjectionRules
) -> Reason | None:
    """The reason to cut in now, or None.

    `text`: the user's stable words; `spoken`: samples since the turn began; `scores`: the engine's opinion of the
    judged reasons, by name (missing: not asked).
    """
    if not allowed(past, t, rules):
        return None
    for reason in rules.reasons:
        if reason.name in past.used or any(contains(text, phrase) for phrase in reason.unless):
            continue
        heard = any(contains(text, phrase) for phrase in reason.hears)
        late = reason.after is not None and spoken >= reason.after * SAMPLE_RATE
        judged = reason.judged and scores.get(reason.name, float("-inf")) >= rules.threshold
        if heard or late or judged:
            return reason
    return None


@dataclass(frozen=True)
class SilenceRules:
    """What the assistant does when nobody has spoken for long. Nothing, unless a persona wants it."""

    after: int = 0
    """Samples of silence before it speaks; 0: never."""
    say: tuple[str, ...] = ()
    at_most: int = 2
    """Times in a row without a word from the user."""

    def due(self, quiet: int, times: int) -> bool:
        """Whether to speak after `quiet` samples of silence, having spoken `times` times into it."""
        return bool(self.say) and 0 < self.after <= quiet and times < self.at_most
