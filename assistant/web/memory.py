"""What a page needs to show a conversation that was going on before it came: after a reload, or in a second tab."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from assistant.live import FrontEnd, Status
from assistant.timeline.events import Event, EventType, Turn
from assistant.transcript import Line, Transcript
from assistant.web import messages

PICTURE = 60 * 50
"""Frames of loudness that are kept: a minute."""


class Memory(FrontEnd):
    """The last minute's picture and the transcript. On the conversation's thread."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._user: deque[int] = deque(maxlen=PICTURE)
        self._assistant: deque[int] = deque(maxlen=PICTURE)
        self._events: deque[Event] = deque(maxlen=200)
        self._turns: deque[Turn] = deque(maxlen=30)
        self._status: Status | None = None
        self.show: Callable[[str], None] | None = None
        """The connected page's `send`: gets every line that changes."""

    def _show(self, lines: list[Line]) -> None:
        if self.show is not None:
            for line in lines:
                self.show(messages.write("line", **messages.line_data(line)))

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        self._show(self.transcript.event(event))
        if event.type is not EventType.PARTIAL:
            self._events.append(event)

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._show(self.transcript.turn(turn))
        if self._turns and self._turns[-1].index == turn.index:
            self._turns.pop()
        self._turns.append(turn)

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        self._user.extend(messages.levels(status.user))
        self._assistant.extend(messages.levels(status.assistant))
        self._status = status

    def snapshot(self) -> dict[str, Any]:
        """All of it, as the page reads it."""
        return {
            "lines": [messages.line_data(line) for line in self.transcript.lines],
            "user": list(self._user),
            "assistant": list(self._assistant),
            "events": [messages.event_data(event) for event in self._events],
            "turns": [messages.turn_data(turn) for turn in self._turns],
            "status": None if self._status is None else messages.status_data(self._status),
        }
