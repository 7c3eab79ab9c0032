"""Text that goes round in circles: Whisper's typical way of being wrong, found without a model."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.ears.stabiliser import bare

REPEATS = 3
"""A phrase of two words or more this often in a row is a loop; people say things twice."""

SINGLE_REPEATS = 5
"""For one word more: "no, no, no, no" is something people say."""

LONGEST_PHRASE = 20


def loop_start(words: Sequence[str]) -> int | None:
    """Index of the second round of the first loop in `words`, or None.

    Worked example: "I said stop it stop it stop it" has a phrase of two words three times in a row
    from index 2, so the answer is 4.
    """
    spoken = [bare(word) for word in words]
    for start in range(len(spoken)):
        for length in range(1, min(LONGEST_PHRASE, (len(spoken) - start) // 2) + 1):
            phrase = spoken[start : start + length]
            rounds = 1
            while spoken[start + rounds * length : start + (rounds + 1) * length] == phrase:
                rounds += 1
            needed = SINGLE_REPEATS if length == 1 else REPEATS
            # A run of one word is also a run of two of them: it must pass the stricter count.
            if len(set(phrase)) == 1 and rounds * length < SINGLE_REPEATS:
                continue
            if rounds >= needed or (length == 1 and rounds >= SINGLE_REPEATS):
                return start + length
    return None


def loops(words: Sequence[str]) -> bool:
    """Does the text repeat itself as nobody speaks?"""
    return loop_start(words) is not None
