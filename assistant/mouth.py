"""How a persona speaks: its voice at its own speed and liveliness, through its effects; or not aloud at all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_RATE
from assistant.personas.model import VoiceChoice
from voices import Clause, ClauseSplitter, SpeechPiece, Voice
from voices.effects import Effects


@dataclass
class _Rehearsal:
    """Fixed phrases, synthesised before they are needed; shared by all answers of a persona."""

    waiting: list[Clause]
    ready: dict[tuple[str, bool], tuple[SpeechPiece, ...]]


class PersonaMouth:
    """A voice, spoken as the persona wants it."""

    def __init__(self, voice: Voice, choice: VoiceChoice, phrases: Sequence[str] = ()) -> None:
        """`phrases` are said word for word some day: `rehearse` makes them ready to sound at once.

        Raises VoiceError if an effect does not exist, or its library.
        """
        self._voice = voice
        self._choice = choice
        self._effects = Effects(choice.effects, voice.sample_rate)
        self._rehearsal = _Rehearsal([clause for phrase in phrases for clause in _clauses(phrase)], {})
        self.sample_rate = voice.sample_rate

    def fresh(self) -> PersonaMouth:
        """See `assistant.conversation.reply.Mouth`."""
        twin = PersonaMouth(self._voice, self._choice)
        twin._rehearsal = self._rehearsal
        return twin

    def stream(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        """See `assistant.conversation.reply.Mouth`."""
        ready = self._rehearsal.ready.get((clause.text, clause.continues))
        for piece in ready or self._spoken(clause, quickly=quickly):
            yield replace(piece, pcm=self._effects.process(piece.pcm))

    def tail(self) -> NDArray[np.float32]:
        """See `assistant.conversation.reply.Mouth`."""
        return self._effects.tail()

    def rehearse(self) -> bool:
        """See `assistant.conversation.reply.Mouth`."""
        if not self._rehearsal.waiting:
            return False
        clause = self._rehearsal.waiting.pop(0)
        self._rehearsal.ready[clause.text, clause.continues] = tuple(self._spoken(clause, quickly=False))
        return True

    def _spoken(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        return self._voice.stream(
            clause.text,
            speed=self._choice.speed,
            variation=self._choice.variation,
            continues=clause.continues,
            first_frames=None if quickly else sys.maxsize,
        )


def _clauses(phrase: str) -> list[Clause]:
    """As a reply cuts it: a phrase is spoken clause by clause, and found again by them."""
    splitter = ClauseSplitter()
    return [*splitter.push(phrase), *splitter.finish()]


class VoiceShelf:
    """Voices beside the one that was loaded first, each loaded when a persona wants it. Any thread."""

    def __init__(self, threads: int, *, one_for_all: bool) -> None:
        """`one_for_all`: the first voice was chosen for every persona."""
        self._threads = threads
        self._one_for_all = one_for_all
        self._first: str | None = None
        self._lock = threading.Lock()
        self._loaded: dict[str, Voice] = {}

    def other(self, name: str) -> Voice | None:
        """The voice called `name`; None if it is the first one, whose name is the first that is asked for."""
        from assistant.models import find_model

        with self._lock:
            self._first = self._first or name
            if self._one_for_all or name == self._first:
                return None
            if name not in self._loaded:
                self._loaded[name] = Voice.load(find_model(voice_reference(name)), threads=self._threads)
            return self._loaded[name]


def voice_reference(name: str) -> str:
    """A voice's name in the catalogue: "joe" means "piper-joe"."""
    from assistant.models import load_catalogue

    return f"piper-{name}" if f"piper-{name}" in load_catalogue().models else name


class SilentMouth:
    """Says everything without a sound: for answers that are only printed."""

    sample_rate = PLAYBACK_RATE

    def fresh(self) -> SilentMouth:
        """See `assistant.conversation.reply.Mouth`."""
        return self

    def stream(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        """See `assistant.conversation.reply.Mouth`."""
        yield SpeechPiece(np.zeros(0, np.float32), 0, ())

    def tail(self) -> NDArray[np.float32]:
        """See `assistant.conversation.reply.Mouth`."""
        return np.zeros(0, np.float32)

    def rehearse(self) -> bool:
        """See `assistant.conversation.reply.Mouth`."""
        return False
