"""One answer: decoded, cut into clauses, spoken, with every word tied to its tokens.

An answer is made in steps of one clause, so that a long one costs nothing until it is about to be heard, and a
dropped one stops within a step. Steps run on the MIND lane; the pieces they return are immutable.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_RATE
from assistant.audio.resample import resample
from engine import Generation, Sampling, Session, Token
from voices import Clause, ClauseSplitter, Speech, WordTiming, at_rate


@dataclass(frozen=True)
class SpokenClause:
    """A clause of an answer with its sound.

    `words` have character offsets in the whole answer and samples at `PLAYBACK_RATE` from the clause's first sample.
    """

    text: str
    start: int
    sound: NDArray[np.float32]
    words: tuple[WordTiming, ...]


@dataclass(frozen=True)
class Marks:
    """Seconds on the audio clock at which the stages of an answer were reached; None: not yet."""

    first_token: float | None = None
    first_clause: float | None = None
    first_sound: float | None = None


@dataclass(frozen=True)
class ReplyStep:
    """What one step brought: at most one clause. `finished`: no more will come."""

    clause: SpokenClause | None
    text: str
    """All of the answer decoded so far."""
    finished: bool
    marks: Marks


def resampled(speech: Speech) -> tuple[NDArray[np.float32], tuple[WordTiming, ...]]:
    """Sound and word samples of `speech` at `PLAYBACK_RATE`."""
    if speech.sample_rate == PLAYBACK_RATE or speech.pcm.size == 0:
        return speech.pcm, speech.words
    sound = resample(speech.pcm, speech.sample_rate, PLAYBACK_RATE)
    return sound, at_rate(speech.words, speech.sample_rate, PLAYBACK_RATE)


class Reply:
    """An answer being made on `session`, a fork whose log ends where the answer begins. MIND lane only, but for
    `cancel`, which any thread may call."""

    def __init__(
        self,
        session: Session,
        sampling: Sampling,
        speak: Callable[[str], Speech],
        splitter: ClauseSplitter,
        clock: Callable[[], float],
        sentences: int = 0,
    ) -> None:
        """`sentences`: how many the answer may have; 0 leaves it to the model."""
        self.session = session
        self.prompt_length = len(session)
        self._cancelled = threading.Event()
        self._sampling = sampling
        self._speak = speak
        self._splitter = splitter
        self._clock = clock
        self._sentences_left = sentences or sys.maxsize
        self._generation: Generation | None = None
        self._tokens: Iterator[Token] = iter(())
        self._clauses: deque[Clause] = deque()
        self._text = ""
        self._token_ends: list[int] = []
        """Length of the text after each generated token."""
        self._decoded = False
        self._first_token: float | None = None
        self._first_clause: float | None = None
        self._first_sound: float | None = None

    @property
    def generated(self) -> int:
        """Tokens decoded so far."""
        return len(self._token_ends)

    def cancel(self) -> None:
        """Stop within one decode step; later steps bring nothing."""
        self._cancelled.set()

    def step(self) -> ReplyStep:
        """Decode until a clause is whole, speak it, return it. Cancelled or at the end: nothing, `finished`."""
        clause = self._next_clause()
        spoken = self._spoken(clause) if clause is not None and not self._cancelled.is_set() else None
        finished = self._cancelled.is_set() or (self._decoded and not self._clauses)
        marks = Marks(self._first_token, self._first_clause, self._first_sound)
        return ReplyStep(spoken, self._text, finished, marks)

    def _next_clause(self) -> Clause | None:
        while not self._clauses and not self._decoded:
            self._decode_one()
        if not self._clauses:
            return None
        if self._first_clause is None:
            self._first_clause = self._clock()
        return self._clauses.popleft()

    def _decode_one(self) -> None:
        if self._generation is None:
            self._generation = self.session.generate(self._sampling, cancel=self._cancelled)
            self._tokens = iter(self._generation)
        token = next(self._tokens, None)
        if token is None:
            self._decoded = True
            if not self._cancelled.is_set():
                self._queue(self._splitter.finish())
            return
        if self._first_token is None:
            self._first_token = self._clock()
        self._text += token.text
        self._token_ends.append(len(self._text))
        self._queue(self._splitter.push(token.text))

    def _queue(self, clauses: list[Clause]) -> None:
        for clause in clauses:
            self._clauses.append(clause)
            self._sentences_left -= not clause.continues
            if self._sentences_left == 0:
                self._end_after(clause)
                return

    def _end_after(self, clause: Clause) -> None:
        """The answer is long enough: what was decoded behind `clause` never was."""
        self.end_decoding()
        self._text = self._text[: clause.end]
        del self._token_ends[bisect_right(self._token_ends, clause.end) :]

    def _spoken(self, clause: Clause) -> SpokenClause:
        sound, words = resampled(self._speak(clause.text))
        if self._first_sound is None and sound.size:
            self._first_sound = self._clock()
        placed = tuple(
            replace(word, start_char=word.start_char + clause.start, end_char=word.end_char + clause.start)
            for word in words
        )
        return SpokenClause(clause.text, clause.start, sound, placed)

    def end_decoding(self) -> None:
        """Take no more tokens: the engine stops within a step, and the session may be changed after that."""
        if self._generation is not None:
            self._generation.cancel()
        self._decoded = True

    def tokens_of(self, chars: int) -> int:
        """How many generated tokens lie wholly within the first `chars` characters of the answer."""
        return bisect_right(self._token_ends, chars)
