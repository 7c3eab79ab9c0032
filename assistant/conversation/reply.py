"""One answer: decoded, cut into clauses, spoken, with every word tied to its tokens.

An answer is made in steps of a clause or less, so that a long one costs nothing until it is about to be heard, and a
dropped one stops within a step. Steps run on the MIND lane; the pieces they return are immutable.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_RATE
from assistant.audio.resample import StreamResampler, resample
from assistant.conversation.thoughts import Thoughts
from engine import Generation, Sampling, Session, Token
from voices import Clause, ClauseSplitter, SpeechPiece, WordTiming, at_rate

AHEAD = 10
"""Tokens decoded beyond those that are being spoken: about a clause. More would take the processor from the voice, and
from the ears when the user cuts in."""


@dataclass(frozen=True)
class SpokenPiece:
    """A stretch of an answer's sound: a whole clause, or a part of the first one.

    `words`: those that begin in it, with character offsets in the whole answer and samples at `PLAYBACK_RATE` from the
    answer's first sample.
    """

    sound: NDArray[np.float32]
    words: tuple[WordTiming, ...]
    clause: str = ""
    """The clause that begins with this piece, as the model wrote it; empty inside one."""


@dataclass(frozen=True)
class Marks:
    """Seconds on the audio clock at which the stages of an answer were reached; None: not yet."""

    first_token: float | None = None
    first_clause: float | None = None
    first_sound: float | None = None


@dataclass(frozen=True)
class ReplyStep:
    """What one step brought: at most one piece of sound. `finished`: no more will come."""

    piece: SpokenPiece | None
    text: str
    """All of the answer decoded so far."""
    finished: bool
    marks: Marks


class Mouth(Protocol):
    """A voice with its manner of speaking, such as a persona's: text of a clause in, sound at its own rate out."""

    sample_rate: int

    def fresh(self) -> Mouth:
        """The same voice for another answer: what rings on in one is not heard in the other."""

    def stream(self, clause: Clause, *, quickly: bool) -> Iterator[SpeechPiece]:
        """The clause's sound in stretches; `quickly`: a short first one, for the answer's beginning."""

    def tail(self) -> NDArray[np.float32]:
        """What still rings when the answer is over, possibly nothing."""

    def rehearse(self) -> bool:
        """Make the next fixed phrase ready; False if all are."""


def sound_of(mouth: Mouth, text: str) -> NDArray[np.float32]:
    """All of `text` at once, float32 at `PLAYBACK_RATE`: for what is no answer."""
    fresh = mouth.fresh()
    pieces = [piece.pcm for piece in fresh.stream(Clause(text, 0), quickly=False)]
    return resample(np.concatenate([*pieces, fresh.tail()]), mouth.sample_rate, PLAYBACK_RATE)


class Reply:
    """An answer being made on `session`, a fork whose log ends where the answer begins. MIND lane only, but for
    `cancel`, which any thread may call."""

    def __init__(
        self,
        session: Session,
        sampling: Sampling,
        mouth: Mouth,
        splitter: ClauseSplitter,
        clock: Callable[[], float],
        sentences: int = 0,
        opening: Sequence[Token] = (),
        only_opening: bool = False,
        thoughts: Thoughts | None = None,
    ) -> None:
        """`sentences`: how many the answer may have behind its opening; 0 leaves it to the model. `opening`: tokens the
        session already ends with, which are the answer's beginning, or all of it. `thoughts`: the model may think
        first."""
        self.session = session
        self.prompt_length = len(session) - len(opening)
        self._opening: deque[Token] = deque(opening)
        self._given = sum(len(token.text) for token in opening)
        """Characters that are said as they stand, however many sentences they are."""
        self._only_opening = only_opening
        self._cancelled = threading.Event()
        self._sampling = sampling
        self._mouth = mouth.fresh()
        self._pieces: Iterator[SpokenPiece] = iter(())
        self._samples = 0
        """Length of the sound made so far, at `PLAYBACK_RATE`."""
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
        self._rung = False
        self._thoughts = thoughts
        self.hidden = 0
        """Tokens before the answer that are not part of it: thoughts."""
        self._first_token: float | None = None
        self._first_clause: float | None = None
        self._first_sound: float | None = None

    @property
    def text(self) -> str:
        """All of the answer decoded so far."""
        return self._text

    @property
    def generated(self) -> int:
        """Tokens decoded so far."""
        return self.hidden + len(self._token_ends)

    def cancel(self) -> None:
        """Stop within one decode step; later steps bring nothing."""
        self._cancelled.set()

    def step(self) -> ReplyStep:
        """Bring the next piece of sound, decoding as far as it takes. Cancelled or at the end: nothing, `finished`."""
        piece = None
        while piece is None and not self._cancelled.is_set():
            piece = next(self._pieces, None)
            if piece is None:
                clause = self._next_clause()
                if clause is not None:
                    self._pieces = self._spoken(clause)
                elif self._rung:
                    break
                else:
                    self._rung = True
                    self._pieces = self._ringing()
        finished = self._cancelled.is_set() or piece is None
        marks = Marks(self._first_token, self._first_clause, self._first_sound)
        return ReplyStep(piece, self._text, finished, marks)

    def _next_clause(self) -> Clause | None:
        while not self._clauses and not self._decoded:
            self._decode_one()
        if not self._clauses:
            return None
        if self._first_clause is None:
            self._first_clause = self._clock()
        return self._clauses.popleft()

    def _decode_one(self) -> None:
        token = self._next_token()
        if token is None:
            self._decoded = True
            if not self._cancelled.is_set():
                held = "" if self._thoughts is None else self._thoughts.finish()
                self._text += held
                self._queue([*self._splitter.push(held), *self._splitter.finish()])
            return
        text = token.text if self._thoughts is None else self._thoughts.push(token.text)
        if self._thoughts is not None and not text and not self._text:
            self.hidden += 1
            return
        if self._first_token is None:
            self._first_token = self._clock()
        self._text += text
        self._token_ends.append(len(self._text))
        self._queue(self._splitter.push(text))

    def _next_token(self) -> Token | None:
        if self._opening:
            return self._opening.popleft()
        if self._only_opening:
            return None
        if self._generation is None:
            self._generation = self.session.generate(self._sampling, cancel=self._cancelled, ahead=AHEAD)
            self._tokens = iter(self._generation)
        return next(self._tokens, None)

    def _queue(self, clauses: list[Clause]) -> None:
        for clause in clauses:
            self._clauses.append(clause)
            self._sentences_left -= not clause.continues and clause.end > self._given
            if self._sentences_left == 0:
                self._end_after(clause)
                return

    def _end_after(self, clause: Clause) -> None:
        """The answer is long enough: what was decoded behind `clause` never was."""
        self.end_decoding()
        self._text = self._text[: clause.end]
        del self._token_ends[bisect_right(self._token_ends, clause.end) :]

    def _spoken(self, clause: Clause) -> Iterator[SpokenPiece]:
        """The sound of a clause at `PLAYBACK_RATE`. Only the answer's first clause is made in stretches: there, each
        millisecond is waited for; later a whole clause at once costs less."""
        rate = self._mouth.sample_rate
        resampler = StreamResampler(rate, PLAYBACK_RATE)
        begin = self._samples
        text = clause.text
        for raw in self._mouth.stream(clause, quickly=begin == 0):
            words = tuple(self._placed(word, clause.start, begin) for word in at_rate(raw.words, rate, PLAYBACK_RATE))
            yield self._piece(resampler.push(raw.pcm), words, text)
            text = ""
        rest = resampler.finish()
        if rest.size:
            yield self._piece(rest, (), text)

    def _ringing(self) -> Iterator[SpokenPiece]:
        """What an effect leaves in the air behind the last word."""
        tail = self._mouth.tail()
        if tail.size and self._samples:
            yield self._piece(resample(tail, self._mouth.sample_rate, PLAYBACK_RATE), (), "")

    def _placed(self, word: WordTiming, chars: int, samples: int) -> WordTiming:
        quiet = word.quiet_sample if word.quiet_sample < 0 else word.quiet_sample + samples
        return WordTiming(
            word.start_char + chars,
            word.end_char + chars,
            word.start_sample + samples,
            word.end_sample + samples,
            quiet,
        )

    def _piece(self, sound: NDArray[np.float32], words: tuple[WordTiming, ...], clause: str) -> SpokenPiece:
        self._samples += sound.size
        if self._first_sound is None and sound.size:
            self._first_sound = self._clock()
        return SpokenPiece(sound, words, clause)

    def end_decoding(self) -> None:
        """Take no more tokens: the engine stops within a step, and the session may be changed after that."""
        if self._generation is not None:
            self._generation.cancel()
        self._decoded = True

    def tokens_of(self, chars: int) -> int:
        """How many generated tokens lie wholly within the first `chars` characters of the answer."""
        return bisect_right(self._token_ends, chars)
