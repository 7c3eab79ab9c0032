"""What time is in a replay. A file of its own, so that the command line can name the choices without the assistant."""

from __future__ import annotations

from enum import StrEnum


class ClockKind(StrEnum):
    """What time is."""

    WALL = "wall"
    VIRTUAL = "virtual"
