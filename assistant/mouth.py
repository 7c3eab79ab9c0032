"""How a persona speaks: its voice at its own speed and liveliness, through its effects; or not aloud at all."""

from __future__ import annotations

import sys
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
