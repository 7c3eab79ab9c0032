"""The chat as lines of text: for pipes, screen readers and small terminals. Typed lines come from standard input."""

from __future__ import annotations

import sys
import threading
from typing import TextIO

from assistant.chat.chat import Chat
from assistant.cli.show import Lines
from assistant.floor import Phase
from assistant.live import FrontEnd, Status
from assistant.timeline.events import Event, EventType, Turn

LONGEST_ANSWER = 120.0
"""Seconds that one typed line is waited for."""


class PlainFront(FrontEnd):
    """Prints, and knows when everything that was asked has been answered."""

    def __init__(self, out: TextIO) -> None:
        self._lines = Lines(out)
        self._changed = threading.Condition()
        self._asked = 0
        self._answered = 0
        self._phase = Phase.LISTENING

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        self._lines.event(event)
        if event.type is EventType.ERROR:
            self._settle()

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._lines.turn(turn)
        self._settle()

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        with self._changed:
            self._phase = status.phase
            self._changed.notify_all()

    def asked(self) -> None:
        """A line is on its way to the conversation."""
        with self._changed:
            self._answered = self._asked
            self._asked += 1

    def wait_for_answer(self) -> None:
        """Return when the last line asked has been answered and nobody speaks."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._answered >= self._asked and self._phase is Phase.LISTENING, LONGEST_ANSWER
            )

    def _settle(self) -> None:
        with self._changed:
            self._answered = self._asked
            self._changed.notify_all()


def run_plain(chat: Chat, *, source: TextIO = sys.stdin, out: TextIO = sys.stdout) -> None:
    """Talk, or type, until Ctrl-C or the end of the input."""
    front = PlainFront(out)
    try:
        chat.start(front)
        if chat.means.typed:
            _type(chat, front, source)
        else:
            print("Talk; cut in when you like. Ctrl-C ends.", file=out, flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        chat.close()


def _type(chat: Chat, front: PlainFront, source: TextIO) -> None:
    at_keyboard = source.isatty()
    if at_keyboard:
        print("Type a line and press Enter; an empty one stops the answer. Ctrl-D ends.", flush=True)
    elif chat.persona.greeting:
        front.asked()
        front.wait_for_answer()
    for line in source:
        if not line.strip():
            chat.session.stop()
            continue
        front.asked()
        chat.session.say(line)
        # A person at the keyboard may cut in with the next line; a file must wait for its answer.
        if not at_keyboard:
            front.wait_for_answer()
    front.wait_for_answer()
