"""What was said, as lines to show: made from events and turn records, the same for the terminal and the page.

A line changes while it is spoken: the user's words are partial until the turn is over, the assistant's are cut into
heard and unheard when it is interrupted. `event` and `turn` return the lines that changed; a line whose text is empty
has gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from assistant.timeline.events import Event, EventType, Turn

KEPT = 400
"""Lines that are kept: hours of talk, bounded memory."""


class Who(Enum):
    """Whose line it is."""

    USER = "user"
    ASSISTANT = "assistant"
    NOTE = "note"


@dataclass(frozen=True)
class Line:
    """One line. `text` was heard (or is being said); `unheard` was to come and was cut off."""

    number: int
    who: Who
    t: float
    text: str
    unheard: str = ""
    partial: bool = False
    """Words that may still change."""
    turn: int | None = None


class Transcript:
    """The lines so far, oldest first."""

    def __init__(self) -> None:
        self._lines: dict[int, Line] = {}
        self._next = 0
        self._open: int | None = None
        """The line of the user's words that are being said."""
        self._prefix = ""
        """Words of a turn that was taken up again: what is said now is joined to them."""
        self.last_turn: Turn | None = None

    @property
    def lines(self) -> list[Line]:
        """All lines with something in them."""
        return [line for line in self._lines.values() if line.text or line.unheard]

    def event(self, event: Event) -> list[Line]:
        """Take in an event; returns the lines that changed."""
        text = event.text or ""
        match event.type:
            case EventType.PARTIAL:
                return [self._user(event.t, f"{self._prefix} {text}".strip(), partial=True)]
            case EventType.USER_TURN:
                line = self._user(event.t, text, partial=False, turn=event.turn)
                self._open, self._prefix = None, ""
                return [line]
            case EventType.ASSISTANT_TEXT:
                return [self._said(event.t, text, event.turn)]
            case EventType.DRAFT_DROPPED if event.turn is not None:
                return self._taken_up_again(event.turn)
            case EventType.REJECTED if not self._prefix:
                return self._gone()
            case EventType.BACKCHANNEL:
                return [*self._gone(), self._note(event.t, f"“{text}”: heard, it goes on")]
            case EventType.PERSONA:
                return [self._note(event.t, f"{text} speaks from here on")]
            case EventType.DEVICE:
                return [self._note(event.t, text)]
            case EventType.ERROR:
                return [self._note(event.t, event.reason or "something failed")]
            case _:
                return []

    def turn(self, turn: Turn) -> list[Line]:
        """Take in the record of a turn; returns the lines that changed."""
        self.last_turn = turn
        line = self._find(Who.ASSISTANT, turn.index)
        if not turn.interrupted or (line is None and not turn.heard_text):
            return []
        if line is None:
            line = self._add(Who.ASSISTANT, turn.user_end, "", turn=turn.index)
        unheard = turn.assistant_text[len(turn.heard_text) :]
        return [self._put(replace(line, text=turn.heard_text, unheard=unheard.strip()))]

    def _user(self, t: float, text: str, *, partial: bool, turn: int | None = None) -> Line:
        line = self._lines.get(self._open) if self._open is not None else None
        if line is None:
            line = self._add(Who.USER, t, "")
            self._open = line.number
        return self._put(replace(line, text=text, partial=partial, turn=turn))

    def _said(self, t: float, text: str, turn: int | None) -> Line:
        line = self._find(Who.ASSISTANT, turn) or self._add(Who.ASSISTANT, t, "", turn=turn)
        return self._put(replace(line, text=f"{line.text.rstrip()} {text.strip()}".strip()))

    def _taken_up_again(self, turn: int) -> list[Line]:
        """The user went on before the answer was heard: their line is open again, the answer never was."""
        changed = []
        if (answer := self._find(Who.ASSISTANT, turn)) is not None:
            changed.append(self._put(replace(answer, text="", unheard="", turn=None)))
        if (user := self._find(Who.USER, turn)) is not None:
            if self._open != user.number:
                changed += self._gone()
            self._open, self._prefix = user.number, user.text
            changed.append(self._put(replace(user, partial=True, turn=None)))
        return changed

    def _gone(self) -> list[Line]:
        """What was being said was nothing."""
        line = self._lines.pop(self._open, None) if self._open is not None else None
        self._open, self._prefix = None, ""
        return [] if line is None else [replace(line, text="", unheard="")]

    def _note(self, t: float, text: str) -> Line:
        return self._add(Who.NOTE, t, text)

    def _add(self, who: Who, t: float, text: str, turn: int | None = None) -> Line:
        line = Line(self._next, who, t, text, turn=turn)
        self._next += 1
        if len(self._lines) >= KEPT:
            del self._lines[next(iter(self._lines))]
        return self._put(line)

    def _put(self, line: Line) -> Line:
        self._lines[line.number] = line
        return line

    def _find(self, who: Who, turn: int | None) -> Line | None:
        if turn is None:
            return None
        for line in reversed(self._lines.values()):
            if line.who is who and line.turn == turn:
                return line
        return None


def as_text(lines: Iterable[Line]) -> str:
    """The lines for a clipboard or a file; what was not heard is left out."""
    names = {Who.USER: "You: ", Who.ASSISTANT: "Crosstalk: ", Who.NOTE: "-- "}
    return "\n".join(f"{names[line.who]}{line.text}" for line in lines if line.text)
