"""The form of a rule that says how a stretch of text is spoken."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from voices.language import Language


@dataclass(frozen=True)
class Part:
    """Spoken words for the stretch `start:end` of the matched text. A comma in `said` is a short pause."""

    said: str
    start: int
    end: int


Spoken = str | list[Part] | None
"""One phrase for the whole match, or parts in order, or None: the rule does not apply after all."""


@dataclass(frozen=True)
class Rule:
    """`say` is asked for each match of `pattern` that no earlier rule has taken; an empty phrase is silence."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str], Language], Spoken]
