"""Notice that a persona's file was changed while it speaks: the new one takes over at the next turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assistant.floor import Phase
from assistant.live import FrontEnd, Status
from assistant.personas.faults import PersonaError
from assistant.personas.files import find, load, load_file
from assistant.personas.model import Persona

LOOK_EVERY = 1.0
"""Seconds on the audio clock between two looks."""
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


class PersonaWatch(FrontEnd):
    """Listens in on a live conversation and looks at the files while nobody speaks."""

    def __init__(self, name: str, changed: Callable[[Persona], None], failed: Callable[[str], None]) -> None:
        """`changed(persona)` and `failed(why)` are called on the conversation's thread."""
        self._files = PersonaFiles(name)
        self._changed = changed
        self._failed = failed
        self._looked = 0.0

    def follow(self, name: str) -> None:
        """Another persona speaks from now on."""
        self._files = PersonaFiles(name)

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        if status.phase is not Phase.LISTENING or status.t - self._looked < LOOK_EVERY:
            return
        self._looked = status.t
        try:
            persona = self._files.poll()
        except PersonaError as error:
            self._failed(str(error))
            return
        if persona is not None:
            self._changed(persona)
