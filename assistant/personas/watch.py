"""Notice that a persona's file was changed."""

from __future__ import annotations

from pathlib import Path

from assistant.personas.faults import PersonaError
from assistant.personas.files import find, load, load_file
from assistant.personas.model import Persona

Stamp = tuple[int, int] | None
"""When a file was written and how long it is; None: it is not there."""


class PersonaFiles:
    """The files one persona is made of. `poll` asks the file system for their times and reads them only if changed."""

    def __init__(self, name: str) -> None:
        """`name` as for `load_persona`. Never raises: what is wrong comes with the first change."""
        self._name = name
        self._files: tuple[Path, ...] = ()
        try:
            self._files = load(name).files
        except PersonaError:
            pass
        self._stamps = self._look()

    def poll(self) -> Persona | None:
        """The persona as it is now if its files have changed since the last call. Raises PersonaError once for each
        change that made it impossible: the one before goes on."""
        stamps = self._look()
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        loaded = load_file(find(self._name))
        self._files = loaded.files
        self._stamps = self._look()
        return loaded.persona

    def _look(self) -> dict[Path, Stamp]:
        return {file: _stamp(file) for file in self._files}


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
