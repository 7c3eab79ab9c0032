"""The log on standard error: one event a line, fields after it. What was said is logged at `debug` only."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import datetime
from typing import Any, TextIO

from assistant.daemon.config import LogChoice, LogForm

_PRIORITY = {"ERROR": 3, "WARNING": 4, "INFO": 6, "DEBUG": 7}


class Log:
    """`log.info("turn", seconds=1.2)` from any thread."""

    def __init__(self, choice: LogChoice) -> None:
        self._logger = logging.getLogger("crosstalk")  # other rooms log below it
        self._logger.propagate = False
        self._handler = logging.StreamHandler(_own_stderr())
        self._logger.handlers = [self._handler]
        self.use(choice)

    def use(self, choice: LogChoice) -> None:
        """Another level or form from now on."""
        journal = bool(os.environ.get("JOURNAL_STREAM"))
        self._handler.setFormatter(_Json() if choice.form is LogForm.JSON else _Text(journal))
        self._logger.setLevel(choice.level.value.upper())

    def error(self, event: str, **fields: Any) -> None:
        """Something is broken."""
        self._logger.error(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Any) -> None:
        """Something is missing, and the daemon goes on without it."""
        self._logger.warning(event, extra={"fields": fields})

    def info(self, event: str, **fields: Any) -> None:
        """What an owner wants to read after a week."""
        self._logger.info(event, extra={"fields": fields})

    def debug(self, event: str, **fields: Any) -> None:
        """Everything, words included."""
        self._logger.debug(event, extra={"fields": fields})


def _own_stderr() -> TextIO:
    """Standard error under a number of its own: PortAudio's binding points number 2 at nothing while it looks for
    devices, and a line that another thread wrote then was lost."""
    try:
        copy = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # it is no file
        return sys.stderr
    return open(copy, "w", buffering=1, encoding="utf-8", errors="backslashreplace")


class _Text(logging.Formatter):
    def __init__(self, journal: bool) -> None:
        super().__init__()
        self._journal = journal  # which keeps the time itself, and takes the priority from the front of the line

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_shown(value)}" for name, value in record.__dict__.get("fields", {}).items())
        if self._journal:
            return f"<{_PRIORITY.get(record.levelname, 6)}>{record.getMessage()}{fields}"
        time = datetime.fromtimestamp(record.created).isoformat(timespec="milliseconds")
        return f"{time} {record.levelname.lower():7} {record.getMessage()}{fields}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | record.__dict__.get("fields", {}), ensure_ascii=False, default=str)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    plain = text and all(letter.isprintable() and letter not in ' "=' for letter in text)
    return text if plain else json.dumps(text, ensure_ascii=False)
