"""When the conversation is written to disk, and how it is taken up again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from assistant.build import Parts
from assistant.conversation.keeping import NOTES, Kept, load_kept
from assistant.daemon.config import KeepChoice
from assistant.daemon.log import Log
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession, Status
from assistant.llm_openai.dialogue import FILE, RemoteKept, load_remote
from assistant.timeline.events import Turn
from engine import SavedSessionError

PATIENCE = 30.0
"""Seconds a disk may take."""


class Memory(FrontEnd):
    """Saves when asked, at the end, and when a changed conversation has been quiet for a while."""

    def __init__(self, folder: Path, choice: KeepChoice, log: Log, monotonic: Callable[[], float] = time.monotonic):
        self._folder = folder
        self._log = log
        self._monotonic = monotonic
        self._changed = False
        self._quiet_since = monotonic()
        self._phase = Phase.LISTENING
        self.choice = choice
        self.saved_tokens: int | None = None
        """Tokens of the last save or load."""

    def load(self, parts: Parts) -> Kept | RemoteKept | None:
        """The conversation of last time; a damaged one is moved aside and said."""
        if not self.choice.conversation:
            return None
        try:
            if parts.remote is not None:
                return load_remote(self._folder)
            kept = load_kept(parts.engine, self._folder)
        except SavedSessionError as error:
            self._log.warning("conversation-lost", why=str(error))
            notes = self._folder / (NOTES if parts.remote is None else FILE)
            if notes.exists():
                notes.replace(notes.with_suffix(".broken"))
            return None
        if kept is not None:
            self.saved_tokens = len(kept.session)
            self._log.info("conversation-loaded", tokens=self.saved_tokens, turns=len(kept.turns))
        return kept

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._changed = True

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        if status.phase is not self._phase or status.phase is not Phase.LISTENING:
            self._phase = status.phase
            self._quiet_since = self._monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        if not (self.choice.conversation and self.choice.after and self._changed):
            return False
        return self._monotonic() - self._quiet_since >= self.choice.after

    def save(self, session: LiveSession) -> int:
        """Write it now, behind the work under way; returns the tokens. SavedSessionError. Not for its own thread."""
        results: list[int | Exception] = []
        done = threading.Event()

        def saved(result: int | Exception) -> None:
            results.append(result)
            done.set()

        self._changed = False
        session.call(lambda conversation: conversation.save(self._folder, saved))
        if not done.wait(PATIENCE):
            results.append(SavedSessionError(f"writing to {self._folder} took longer than {PATIENCE:g} s."))
        if isinstance(results[0], Exception):
            self._changed = True
            self._quiet_since = self._monotonic()  # tried again after as long a while, not ten times a second
            raise results[0]
        self.saved_tokens = results[0]
        return results[0]

    def finish(self, session: LiveSession) -> None:
        """The last save, if one is wanted."""
        if not self.choice.conversation:
            return
        try:
            self._log.info("conversation-saved", tokens=self.save(session))
        except SavedSessionError as error:
            self._log.error("conversation-lost", why=str(error))
