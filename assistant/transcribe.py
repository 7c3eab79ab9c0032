"""A whole recording to text, through the same ears as a conversation: speech found, cut at pauses, gated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE, samples
from assistant.conversation.listener import Heard, Listener
from assistant.ears.edges import SpeechEdges, SpeechEnded, SpeechStarted
from assistant.ears.gate import GateSettings
from assistant.ears.transcriber import Transcriber
from assistant.ears.utterance import UNHURRIED
from assistant.ears.vad import VadSettings

GAP = samples(700)
"""Silence that ends a piece; nobody waits for an answer here, so it may be long."""


@dataclass(frozen=True)
class Piece:
    """One stretch of speech: seconds of the recording, and its words."""

    start: float
    end: float
    text: str


def transcribe(
    frames: Iterable[NDArray[np.float32]],
    transcriber: Transcriber,
    vad: VadSettings | None = None,
    gate: GateSettings | None = None,
) -> Iterator[Piece]:
    """The pieces of a recording given as 20 ms frames at 16 kHz, in order, each as soon as it is understood."""
    # Partial transcripts are for people who wait; here each stretch of sound is decoded once.
    listener = Listener(SpeechEdges(vad), transcriber, UNHURRIED, gate)
    now = start = 0
    ended: int | None = None
    heard: Heard | None = None
    for frame in _with_silence(frames):
        now += FRAME
        for edge in listener.push(frame):
            if isinstance(edge, SpeechStarted):
                if not listener.busy:
                    start, heard = edge.at_sample, None
                listener.open(edge.at_sample)
                ended = None
            elif isinstance(edge, SpeechEnded):
                listener.pause(edge)
                ended = edge.at_sample
        while job := listener.next_job():
            heard = listener.receive(job()) or heard
        if ended is not None and now - ended >= GAP:
            listener.forget()
            if heard and heard.text.strip():
                yield Piece(start / SAMPLE_RATE, ended / SAMPLE_RATE, heard.text.strip())
            ended = heard = None


def _with_silence(frames: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """The frames, then enough silence to end what is being said at the very end."""
    yield from frames
    yield from np.zeros((2 * GAP // FRAME, FRAME), np.float32)
