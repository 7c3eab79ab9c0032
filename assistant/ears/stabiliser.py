"""Which words of a growing utterance will not change any more: pure functions over hypotheses."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

HELD_BACK = 1
"""Last words never called stable: they may be cut in the middle ("wind" of "window")."""


@dataclass(frozen=True)
class Agreement:
    """A hypothesis split at the point up to which it can be relied on."""

    stable: tuple[str, ...]
    unstable: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return self.stable + self.unstable


NOTHING = Agreement((), ())


def bare(word: str) -> str:
    """The word as it is compared: without case and without punctuation, except inside numbers.

    "Don't," is "don't", "3.5." is "3.5", "U.S." is "us"; a word of nothing but punctuation is "".
    """
    folded = unicodedata.normalize("NFKC", word).casefold().replace("\u2019", "'")
    return "".join(c for i, c in enumerate(folded) if _counts(folded, i)).strip("'")


def _counts(text: str, at: int) -> bool:
    character = text[at]
    if character.isalnum() or unicodedata.combining(character) or character in "'$%€£":
        return True
    return text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()


def same(left: str, right: str) -> bool:
    """Are these the same word, whatever their punctuation and case?"""
    return bare(left) == bare(right)


def common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """The number of words two hypotheses begin with in common."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if not same(one, other):
            break
        count += 1
    return count


def agree(previous: Sequence[str], current: Sequence[str], held_back: int = HELD_BACK) -> Agreement:
    """Split `current` where it stops agreeing with the hypothesis before it.

    The stable words are `current`'s own, spelled as there. The last `held_back` words of `current` are
    unstable even when both agree on them.
    """
    count = min(common_prefix(previous, current), max(0, len(current) - held_back))
    return Agreement(tuple(current[:count]), tuple(current[count:]))


@dataclass(frozen=True)
class Stabiliser:
    """The running state: what was stable, and the last hypothesis. `next` gives the state after one more.

    Stable words stay as they are for as long as later hypotheses begin with them; a hypothesis that
    contradicts them takes back the contradicted ones, which `Agreement.stable` getting shorter shows.
    """

    last: tuple[str, ...] = ()
    agreement: Agreement = NOTHING

    def next(self, current: Sequence[str]) -> Stabiliser:
        """The state after hearing `current`, the words of the whole utterance so far."""
        words = tuple(current)
        kept = self.agreement.stable[: common_prefix(self.agreement.stable, words)]
        fresh = agree(self.last, words)
        # What once was stable keeps its spelling: a comma that comes and goes would rewind the LLM.
        stable = kept + fresh.stable[len(kept) :]
        return Stabiliser(words, Agreement(stable, words[len(stable) :]))

    def final(self, current: Sequence[str]) -> Stabiliser:
        """The state after the last hypothesis of a piece: all its words are stable."""
        words = tuple(current)
        return Stabiliser(words, Agreement(words, ()))

    def reopened(self, held_back: int = HELD_BACK) -> Stabiliser:
        """The state when speech goes on after `final`: the last words are open again."""
        words = self.agreement.words
        kept = max(0, min(len(self.agreement.stable), len(words) - held_back))
        return Stabiliser(words, Agreement(words[:kept], words[kept:]))
