"""A text to sound, clause by clause, through the same voice as a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assistant.errors import CrosstalkError, ExitCode
from voices import ClauseSplitter

if TYPE_CHECKING:
    from voices import Voice


class NothingToSay(CrosstalkError):
    """The text has no word in it."""

    exit_code = ExitCode.INPUT


@dataclass(frozen=True)
class SpokenClause:
    """Sound of one clause, float32 at `rate`, and where its words are: (text, start, end) in seconds of it."""

    pcm: NDArray[np.float32]
    rate: int
    words: tuple[tuple[str, float, float], ...]


def speak(text: str, voice: Voice, speed: float = 1.0) -> Iterator[SpokenClause]:
    """The clauses of `text` as they are synthesised; one that has nothing to say (such as "...") is left out."""
    splitter = ClauseSplitter()
    for clause in [*splitter.push(text), *splitter.finish()]:
        speech = voice.synthesize(clause.text, speed=speed)
        if len(speech.pcm):
            rate = speech.sample_rate
            words = tuple(
                (clause.text[w.start_char : w.end_char], w.start_sample / rate, w.end_sample / rate)
                for w in speech.words
            )
            yield SpokenClause(speech.pcm, rate, words)
