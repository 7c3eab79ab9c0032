"""What was said against what was understood."""

from __future__ import annotations

from difflib import SequenceMatcher

from assistant.overlap import plain_words

_NUMBERS = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve".split(),
        [str(n) for n in range(13)],
        strict=True,
    )
)
ALIKE = 0.6


def normal(text: str) -> list[str]:
    """Words for comparing: lower case, no punctuation, numbers as digits, runs of digits one by one."""
    words: list[str] = []
    for word in plain_words(text):
        bare = word.replace("'", "").replace("’", "")
        for piece in bare.split("-"):
            digits = _NUMBERS.get(piece, piece)
            words += list(digits) if digits.isdigit() and len(digits) > 2 else [digits]
    return [word for word in words if word]


def lost_words(said: str, understood: str) -> tuple[int, int]:
    """Words of `said` missing at the start and at the end of `understood`.

    A misheard word is not a lost one: a word there instead counts for it.
    """
    a, b = normal(said), normal(understood)
    blocks = [block for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks() if block.size]
    if not blocks:
        return (max(0, len(a) - len(b)), 0) if b else (len(a), 0)
    first, last = blocks[0], blocks[-1]
    start = first.a - first.b
    end = (len(a) - last.a - last.size) - (len(b) - last.b - last.size)
    return max(0, start), max(0, end)


def holds(text: str, wanted: str) -> bool:
    """Whether the words of `wanted` are in `text` in order, most of them, a little misspelled at most."""
    words, found, place = normal(text), 0, 0
    needed = normal(wanted)
    for word in needed:
        for index in range(place, len(words)):
            if words[index] == word or SequenceMatcher(None, words[index], word).ratio() >= 0.75:
                place, found = index + 1, found + 1
                break
    return found >= max(1, round(ALIKE * len(needed) + 0.2)) if needed else True


def holds_any(text: str, alternatives: str) -> bool:
    """Whether `text` has one of the `a|b|c`."""
    plain = f" {' '.join(normal(text))} "
    return any(f" {' '.join(normal(one))}" in plain for one in alternatives.split("|"))
