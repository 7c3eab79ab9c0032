"""How a persona speaks: the voice with the persona's speed; or not aloud at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from assistant.audio.constants import PLAYBACK_RATE
from assistant.persona import VoiceChoice
from voices import Clause, SpeechPiece, Voice


class PersonaMouth:
    """A voice, spoken as the persona wants it."""

    def __init__(self, voice: Voice, choice: VoiceChoice) -> None:
        self._voice = voice
        self._choice = choice
        self.sample_rate = voice.sample_rate

    def stream(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        """See `assistant.conversation.reply.Mouth`."""
        return self._voice.stream(
            clause.text,
            speed=self._choice.speed,
            continues=clause.continues,
            first_frames=None if quickly else sys.maxsize,
        )


class SilentMouth:
    """Says everything without a sound: for answers that are only printed."""

    sample_rate = PLAYBACK_RATE

    def stream(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        """See `assistant.conversation.reply.Mouth`."""
        yield SpeechPiece(np.zeros(0, np.float32), 0, ())
