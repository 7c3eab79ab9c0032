"""How fetching a model tells how far it is; who shows it, and how, is the caller's business."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about one model at a time."""

    def start(self, label: str, total: int) -> None:
        """A step begins; `total` is its number of bytes."""

    def at(self, done: int) -> None:
        """`done` bytes of the step are there."""

    def note(self, text: str) -> None:
        """Something worth a line, e.g. that another process is at it."""

    def finish(self) -> None:
        """The model is done with, whether it worked or not."""


class Silent:
    """Shows nothing."""

    def start(self, label: str, total: int) -> None: ...

    def at(self, done: int) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...
