"""When a cue begins: at a time, or relative to something that happens in the conversation.

    at: 1.0                               a second after the beginning
    at: 1.2 after the assistant starts    its first audible sample
    at: 0.5 after the user ends           the cue before this one
    at: 0.3 before the assistant ends     the last words are in the air
    at: 2.0 after all is quiet            nobody speaks, nothing is being made
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Anchor(Enum):
    """What a time counts from."""

    BEGINNING = "the beginning"
    ASSISTANT_STARTS = "the assistant starts"
    ASSISTANT_ENDS = "the assistant ends"
    USER_STARTS = "the user starts"
    USER_ENDS = "the user ends"
    ENDPOINT = "the endpoint"
    QUIET = "all is quiet"


@dataclass(frozen=True)
class Moment:
    """`offset` seconds after (negative: before) the first `anchor` that follows the cue before this one."""

    anchor: Anchor
    offset: float = 0.0


_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*s?\s+(after|before)\s+(?:the\s+)?(.+)", re.IGNORECASE)
_BY_NAME = {anchor.value.removeprefix("the "): anchor for anchor in Anchor}


def parse_moment(text: str | float) -> Moment:
    """The moment that `text` names; ValueError says what is possible."""
    try:
        return Moment(Anchor.BEGINNING, float(text))
    except ValueError:
        pass
    found = _FORM.fullmatch(str(text).strip())
    anchor = _BY_NAME.get(found[3].strip().lower()) if found else None
    if found is None or anchor is None:
        known = ", ".join(f"'{anchor.value}'" for anchor in Anchor)
        raise ValueError(f"a moment is seconds, or e.g. '1.2 after the assistant starts' (of {known}), not '{text}'")
    before = found[2].lower() == "before"
    if before and anchor is not Anchor.ASSISTANT_ENDS:
        raise ValueError(f"only the assistant's end is known beforehand, so '{text}' cannot be")
    return Moment(anchor, -float(found[1]) if before else float(found[1]))
