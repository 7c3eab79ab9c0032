"""Did the microphone hear the assistant? The words tell, where the canceller let something through."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

AT_LEAST = 3
"""Fewer words prove nothing: people repeat a word or two of what they hear ("eight legs?")."""
SHARE = 0.7
"""Share of the heard words that must stand in the air in the same order."""


def is_echo(heard: Sequence[str], in_the_air: Sequence[str]) -> bool:
    """Whether the words `heard` are (nearly) a stretch of the words `in_the_air`, both as `plain_words` gives them.

    >>> is_echo(["made", "by", "light", "when"], ["a", "rainbow", "is", "made", "by", "light", "specifically", "when"])
    True
    """
    if len(heard) < AT_LEAST or not in_the_air:
        return False
    blocks = SequenceMatcher(None, in_the_air, heard, autojunk=False).get_matching_blocks()
    matched = [block for block in blocks if block.size]
    if not matched:
        return False
    width = matched[-1].a + matched[-1].size - matched[0].a
    together = width <= 2 * len(heard)  # words scattered over a whole answer are no echo of it
    return together and sum(block.size for block in matched) >= SHARE * len(heard)
