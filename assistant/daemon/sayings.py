"""What others want said or asked: sayings wait for the floor, askers for their answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from assistant.conversation.conversation import Conversation
from assistant.errors import CrosstalkError
from assistant.live import FrontEnd, LiveSession, Status
from assistant.timeline.events import Event, EventType, Turn

WAITING = 8
"""Sayings that may wait."""
STALE = 60.0
"""Seconds after which a saying is no news any more."""
LONGEST_ANSWER = 120.0


class TooMany(CrosstalkError):
    """More wants saying than there is time for."""


class Unanswered(CrosstalkError):
    """No answer came."""


@dataclass
class _Question:
    text: str
    done: threading.Event = field(default_factory=threading.Event)
    turn: Turn | None = None
    trouble: str = ""


class Sayings(FrontEnd):
    """A front end that speaks for others."""

    def __init__(self) -> None:
        self._session: LiveSession | None = None
        self._waiting: deque[tuple[float, str]] = deque()
        self._questions: list[_Question] = []
        self._guard = threading.Lock()

    def use(self, session: LiveSession) -> None:
        """The conversation to speak in."""
        self._session = session

    def say(self, text: str) -> None:
        """Have `text` said as soon as nobody speaks. TooMany."""
        if len(self._waiting) >= WAITING:
            raise TooMany(f"{WAITING} sayings wait already; try again later.")
        self._waiting.append((time.monotonic(), text))

    def ask(self, text: str, *, wait: bool) -> Turn | None:
        """The user typed `text`; the turn it became, if that is waited for. Unanswered."""
        assert self._session is not None
        question = _Question(text)
        if wait:
            with self._guard:
                self._questions.append(question)
        self._session.say(text)
        if not wait:
            return None
        try:
            if not question.done.wait(LONGEST_ANSWER):
                raise Unanswered(f"no answer came within {LONGEST_ANSWER:g} s.")
        finally:
            with self._guard:
                self._questions.remove(question)
        if question.turn is None:
            raise Unanswered(f"there is no answer: {question.trouble}")
        return question.turn

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`: ten times a second, on the conversation's thread."""
        if self._waiting and self._session is not None:
            self._session.call(self._say_next)

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        if event.type is EventType.ERROR:
            self._resolve(None, None, event.reason or "an error")

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._resolve(turn.user_text, turn, "")

    def _resolve(self, text: str | None, turn: Turn | None, trouble: str) -> None:
        with self._guard:
            for question in self._questions:
                if not question.done.is_set() and text in (None, question.text):
                    question.turn, question.trouble = turn, trouble
                    question.done.set()
                    return

    def _say_next(self, conversation: Conversation) -> None:
        while self._waiting and conversation.idle:
            at, text = self._waiting.popleft()
            if time.monotonic() - at < STALE:
                conversation.greet(text)
                return
