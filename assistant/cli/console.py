"""What commands share on their way to the terminal: JSON, tables, and the progress of a download."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from assistant.models.progress import Progress


def print_json(value: Any) -> None:
    """For programs: one document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> None:
    """Columns as wide as they need, the last one open-ended; the same in a terminal, a pipe and a screen reader."""
    table = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"


def download_progress() -> Progress:
    """A bar in a terminal, a line now and then elsewhere; on standard error, so that output stays clean."""
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Lines:
    """At most a line every two seconds and one when done."""

    def __init__(self) -> None:
        self._label, self._total, self._told = "", 0, 0.0

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def start(self, label: str, total: int) -> None:
        self._label, self._total, self._told = label, total, time.monotonic()
        self._say(f"{label}: fetching {megabytes(total)}" if total else f"{label}: fetching")

    def at(self, done: int) -> None:
        if time.monotonic() - self._told >= 2:
            self._told = time.monotonic()
            share = f" ({min(100, 100 * done // self._total)} %)" if self._total else ""
            self._say(f"{self._label}: {megabytes(min(done, self._total or done))}{share}")

    def note(self, text: str) -> None:
        self._say(text)

    def finish(self) -> None: ...


class _Bar:
    """Rich's bar: bytes, speed, time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bar = RichProgress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
        self._task: Any = None

    def start(self, label: str, total: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task(label, total=total or None)

    def at(self, done: int) -> None:
        if self._task is not None:
            total = self._bar.tasks[-1].total
            self._bar.update(self._task, completed=min(done, total or done))

    def note(self, text: str) -> None:
        self._bar.console.print(text)

    def finish(self) -> None:
        self._bar.stop()
        self._task = None
