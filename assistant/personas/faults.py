"""What is wrong with a persona, one line each: file, line, field, what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import CrosstalkError, ExitCode


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. `field` is empty where the whole file is meant."""

    file: Path
    line: int | None
    field: str
    text: str

    def __str__(self) -> str:
        where = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return " ".join(f"{where}: {self.field} {self.text}".split())  # one line, whatever the file holds


class PersonaError(CrosstalkError):
    """A persona that is not there or says something impossible. `faults`: all that was found, in the file's order."""

    exit_code = ExitCode.USAGE

    def __init__(self, what: str | Sequence[Fault]) -> None:
        self.faults: tuple[Fault, ...] = () if isinstance(what, str) else tuple(what)
        if isinstance(what, str):
            super().__init__(what)
            return
        more = len(self.faults) - 1
        file = self.faults[0].file
        hint = f" (and {more} more: crosstalk personas check {file})" if more else ""
        super().__init__(f"{self.faults[0]}{hint}")
