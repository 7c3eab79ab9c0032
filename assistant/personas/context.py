"""What is true at the moment, as a note for the model: told with one turn's words, forgotten after it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime

from assistant.personas.model import ContextChoice

WAIT = 0.25
"""Seconds that a turn waits for a command; after that its last answer is told, if it is not too old."""
LONGEST = 10.0
"""Seconds after which a command is ended."""
STALE = 600.0
"""Seconds for which a command's last answer may stand in for a slow one."""
LONGEST_LINE = 200


class Context:
    """Makes the notes for one character. Call from one thread."""

    def __init__(
        self, choice: ContextChoice, language: str = "en", now: Callable[[], datetime] = datetime.now
    ) -> None:
        self._choice = choice
        self._language = language
        self._now = now
        self._running: threading.Thread | None = None
        self._said = ""
        self._said_at = float("-inf")

    def note(self) -> str:
        """One short paragraph in brackets, or "" if there is nothing to say. Waits `WAIT` seconds at most."""
        parts = []
        if self._choice.time:
            parts.append(spoken_time(self._now(), self._language))
        if self._choice.command and (said := self._output()):
            label = self._choice.label
            parts.append(f"{label}: {said}" if label else said)
        return f"({' '.join(_ended(part) for part in parts)})" if parts else ""

    def _output(self) -> str:
        if self._running is None or not self._running.is_alive():
            self._running = threading.Thread(target=self._run, name="crosstalk-context", daemon=True)
            self._running.start()
        self._running.join(WAIT)
        return self._said if time.monotonic() - self._said_at < STALE else ""

    def _run(self) -> None:
        try:
            done = subprocess.run(
                self._choice.command, capture_output=True, timeout=LONGEST, stdin=subprocess.DEVNULL, check=True
            )
        except (OSError, subprocess.SubprocessError):
            self._said = ""  # a sensor that is gone has no temperature
            return
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        line = "".join(c for c in lines[0] if c.isprintable()) if lines else ""
        self._said, self._said_at = line[:LONGEST_LINE].strip(), time.monotonic()


def spoken_time(now: datetime, language: str) -> str:
    """Day and time in the language's own manner; English as a sentence."""
    from babel.dates import format_date, format_time

    if language == "en":
        clock = now.strftime("%I:%M %p").lstrip("0")
        return f"It is {clock} on {now.strftime('%A')}, {now.strftime('%B')} {now.day}, {now.year}"
    return f"{format_date(now, 'full', locale=language)}, {format_time(now, 'short', locale=language)}"


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
