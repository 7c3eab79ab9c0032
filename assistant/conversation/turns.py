"""The turn being answered and its record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assistant.audio.constants import PLAYBACK_RATE, SAMPLE_RATE
from assistant.conversation.reply import Marks, ReplyStep, SpokenPiece
from assistant.overlap import same_words
from assistant.timeline.events import Latency, Tokens, Turn, Word
from voices import WordTiming, heard_chars

if TYPE_CHECKING:
    from assistant.conversation.dialogue import Draft

AUDIBLE = 0.003
"""Amplitude (about -50 dB) from which a sample counts as heard."""


@dataclass(frozen=True)
class Prompt:
    """What is answered: the user's words, and what the answer must begin with."""

    text: str
    opening: str = ""
    """Said as it stands; the model goes on from there."""
    only_opening: bool = False
    """The opening is all of it (a greeting)."""

    def same(self, other: Prompt) -> bool:
        """Whether an answer to one is an answer to the other."""
        openings = (self.opening, self.only_opening) == (other.opening, other.only_opening)
        return openings and same_words(self.text, other.text)


@dataclass
class Answer:
    """An answer and what has come of it so far. Conversation thread only."""

    prompt: Prompt
    draft: Draft | None = None
    """None until the engine has taken the prompt."""
    pieces: list[SpokenPiece] = field(default_factory=list)
    text: str = ""
    marks: Marks = Marks()
    finished: bool = False
    """No more sound will come."""
    in_flight: bool = True
    """A job for this answer is running or queued."""
    dropped: bool = False

    def take(self, step: ReplyStep) -> None:
        """Add what a step brought."""
        self.in_flight = False
        self.text = step.text
        self.marks = step.marks
        self.finished = step.finished
        if step.piece is not None:
            self.pieces.append(step.piece)

    @property
    def samples(self) -> int:
        """Length of the sound made so far, at `PLAYBACK_RATE`."""
        return sum(piece.sound.size for piece in self.pieces)

    def words(self) -> tuple[WordTiming, ...]:
        """All words spoken so far: characters and samples counted from the answer's beginning."""
        return tuple(word for piece in self.pieces for word in piece.words)

    def heard(self, played: int) -> int:
        """Characters of the answer that were heard when `played` samples of it were (at `PLAYBACK_RATE`)."""
        return heard_chars(self.words(), played)

    def lead_in(self) -> int:
        """Samples of silence before the answer's first audible sample, at `PLAYBACK_RATE`."""
        if not self.pieces:
            return 0
        loud = np.abs(self.pieces[0].sound) > AUDIBLE
        return int(loud.argmax()) if loud.any() else 0


@dataclass
class OpenTurn:
    """One exchange from the endpoint on. Times in seconds on the audio clock."""

    index: int
    user_text: str
    user_start: float
    user_end: float
    endpoint_at: float
    transcribed_at: float
    answer: Answer
    speech_start: float | None = None
    speech_end: float | None = None
    heard_text: str = ""
    interrupted: bool = False
    tokens: Tokens = Tokens()

    def record(self) -> Turn:
        """The turn as the timeline keeps it."""
        marks = self.answer.marks
        return Turn(
            index=self.index,
            user_text=self.user_text,
            user_start=self.user_start,
            user_end=self.user_end,
            assistant_text=self.answer.text.strip(),
            heard_text=self.heard_text,
            speech_start=self.speech_start,
            speech_end=self.speech_end,
            interrupted=self.interrupted,
            latency=Latency(
                endpoint=self.endpoint_at - self.user_end,
                asr=self.transcribed_at - self.user_end,
                first_token=self._after_user(marks.first_token),
                first_clause=self._after_user(marks.first_clause),
                tts=self._after_user(marks.first_sound),
                voice_to_voice=self._after_user(self.speech_start),
            ),
            tokens=self.tokens,
            words=self._words(),
        )

    def _after_user(self, moment: float | None) -> float | None:
        return None if moment is None else moment - self.user_end

    def _words(self) -> tuple[Word, ...]:
        if self.speech_start is None:
            return ()
        start = self.speech_start - self.answer.lead_in() / PLAYBACK_RATE
        heard = len(self.heard_text)
        text = self.answer.text
        return tuple(
            Word(
                text[w.start_char : w.end_char],
                start + w.start_sample / PLAYBACK_RATE,
                start + w.sound_end / PLAYBACK_RATE,
                not self.interrupted or w.end_char <= heard,
            )
            for w in self.answer.words()
        )


def to_seconds(sample: int) -> float:
    """Seconds of a sample count on the microphone clock."""
    return sample / SAMPLE_RATE
