"""A conversation as lines of text while it happens: for pipes, screen readers and the demo.

On a terminal the user's growing words are rewritten in place; elsewhere each stable growth is a line.
"""

from __future__ import annotations

import sys
from typing import TextIO

from assistant.timeline.events import Event, EventType, Turn

DIM, BOLD, RED, GREEN, BLUE, ORANGE, PLAIN = (
    "\033[2m",
    "\033[1m",
    "\033[31m",
    "\033[32m",
    "\033[34m",
    "\033[33m",
    "\033[0m",
)


class Lines:
    """Writes events and turns as they come."""

    def __init__(self, out: TextIO = sys.stdout, *, colour: bool | None = None) -> None:
        self._out = out
        self._tty = out.isatty()
        self._colour = self._tty if colour is None else colour
        self._open = False
        """A rewritable line is on the screen."""
        self._last_partial = ""
        self._reported: set[int] = set()

    def event(self, event: Event) -> None:
        """Show an event if it is one that people care about."""
        match event.type:
            case EventType.PARTIAL:
                self._partial(event)
            case EventType.USER_TURN:
                self._last_partial = ""
                self._line(event.t, "you", f"{BOLD}{event.text}{PLAIN}", BLUE)
            case EventType.ASSISTANT_TEXT:
                self._line(event.t, "crosstalk", event.text or "", ORANGE)
            case EventType.BARGE_IN:
                words = f": “{event.text}”" if event.text else ""
                self._line(event.t, "", f"-- you cut in{words}", RED)
            case EventType.BACKCHANNEL:
                self._line(event.t, "", f"-- “{event.text}”: heard, it goes on", DIM)
            case EventType.RESUME:
                self._line(event.t, "", "-- false alarm, it goes on", DIM)
            case EventType.REJECTED:
                self._line(event.t, "", f"-- not speech ({event.reason})", DIM)
            case EventType.PERSONA:
                self._line(event.t, "", f"-- {event.text} speaks from here on", DIM)
            case EventType.DEVICE:
                self._line(event.t, "", f"-- {event.text}", DIM)
            case EventType.ERROR:
                self._line(event.t, "", f"-- {event.reason}", RED)
            case _:
                pass

    def turn(self, turn: Turn) -> None:
        """Show what a turn came to, once it is over."""
        if turn.index in self._reported or turn.tokens.context == 0:
            return
        self._reported.add(turn.index)
        wait, tokens = turn.latency, turn.tokens
        if turn.interrupted:
            self._line(turn.speech_end or turn.user_end, "", f"-- heard of it: “{turn.heard_text}”", RED)
        stages = ", ".join(
            f"{name} {_ms(value)}"
            for name, value in (
                ("turn over", wait.endpoint),
                ("words", wait.asr),
                ("first token", wait.first_token),
                ("clause", wait.first_clause),
                ("voice", wait.tts),
            )
            if value is not None
        )
        reused = tokens.referenced + tokens.copied
        self._line(
            turn.speech_end or turn.user_end,
            "",
            f"   answered after {_ms(wait.voice_to_voice)} ({stages}); "
            f"{tokens.forwarded} tokens forwarded, {reused} reused",
            GREEN,
        )

    def _partial(self, event: Event) -> None:
        text = event.text or ""
        if self._tty:
            self._erase()
            self._out.write(f"{event.t:7.2f} {'you':>9}  {DIM}{text} …{PLAIN}"[:200])
            self._open = True
            self._out.flush()
        elif text != self._last_partial:
            self._line(event.t, "you", f"{text} …", DIM)
        self._last_partial = text

    def _erase(self) -> None:
        if self._open:
            self._out.write("\r\033[2K")
            self._open = False

    def _line(self, t: float, who: str, text: str, colour: str) -> None:
        self._erase()
        line = f"{t:7.2f} {who:>9}  {text}"
        if self._colour:
            line = f"{colour}{line}{PLAIN}"
        else:
            for code in (BOLD, PLAIN):
                line = line.replace(code, "")
        print(line, file=self._out, flush=True)


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{round(seconds * 1000)} ms"
