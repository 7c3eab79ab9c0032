"""Text that goes round in circles: Whisper's typical way of being wrong, found without a model."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.ears.stabiliser import bare

REPEATS = 3
"""A phrase of two words or more this often in a row is a loop; people say things twice."""

SINGLE_REPEATS = 5
"""For one word more: "no, no, no, no" is something people say."""

LONGEST_PHRASE = 20


MOSTLY = 0.5


def looping_words(words: Sequence[str]) -> int:
    """How many of the words are further rounds of a phrase that was said just before.

    Worked example: "I said stop it stop it stop it now" has a phrase of two words three times in a row;
    its second and third round are 4 words.
    """
    spoken = [bare(word) for word in words]
    count = at = 0
    while at < len(spoken):
        length, rounds = _loop_at(spoken, at)
        count += length * (rounds - 1)
        at += max(1, length * rounds)
    return count


def loops(words: Sequence[str]) -> bool:
    """Does any part of the text repeat itself as people hardly do?"""
    return looping_words(words) > 0


def mostly_loops(words: Sequence[str]) -> bool:
    """Is half of the text and more repetition? Then nobody said it."""
    return bool(words) and looping_words(words) >= MOSTLY * len(words)


def _loop_at(spoken: list[str], at: int) -> tuple[int, int]:
    """(length of the phrase, rounds) of the loop that begins at a word; (0, 1) if none does."""
    for length in range(1, min(LONGEST_PHRASE, (len(spoken) - at) // 2) + 1):
        phrase = spoken[at : at + length]
        rounds = 1
        while spoken[at + rounds * length : at + (rounds + 1) * length] == phrase:
            rounds += 1
        # A run of one word is a run of two of them as well: it must pass the single word's count.
        single = len(set(phrase)) == 1
        if rounds >= REPEATS and (not single or rounds * length >= SINGLE_REPEATS):
            return length, rounds
    return 0, 1
