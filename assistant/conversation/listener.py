"""The user's side: frames in; speech edges, and now and then a transcript of the open utterance, out.

frame ─► SpeechEdges ─► edges                       an utterance lives from its first speech until the turn is
  └────► SoundRing ──► UtteranceTranscriber ─► job  over (or it was nothing); pauses inside it do not end it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, samples
from assistant.ears.echo import Canceller, NoCanceller
from assistant.ears.edges import Edge, SpeechEdges, SpeechEnded, SpeechStarted
from assistant.ears.evidence import SpeechEvidence
from assistant.ears.gate import GateSettings, accept
from assistant.ears.hypothesis import Hypothesis, join_words
from assistant.ears.preroll import SoundRing
from assistant.ears.rise import SoundFell, SoundRise, SoundRose
from assistant.ears.transcriber import Transcriber
from assistant.ears.utterance import DecodeJob, UtteranceSettings, UtteranceTranscriber

RING = samples(4_000)
"""Sound kept before anybody is known to speak."""
EATEN = samples(800)
"""So much of what a user begins to say is looked for behind an echo canceller that is blind; 560 ms were seen."""

Noticed = Edge | SoundRose | SoundFell
"""What a frame may show about when the user speaks."""


@dataclass(frozen=True)
class Heard:
    """The open utterance as understood now. `until`: the speech before this sample is covered."""

    text: str
    stable: str
    until: int
    accepted: bool
    reason: str


@dataclass(frozen=True)
class Decoded:
    """The result of one transcription job."""

    job: DecodeJob
    utterance: UtteranceTranscriber
    hypothesis: Hypothesis


class Listener:
    """Ears of one conversation. `next_job` gives work for another thread; all else belongs to the conversation's."""

    def __init__(
        self,
        edges: SpeechEdges,
        transcriber: Transcriber,
        utterance_settings: UtteranceSettings | None = None,
        gate: GateSettings | None = None,
        canceller: Canceller | None = None,
    ) -> None:
        self._canceller = canceller or NoCanceller()
        self._edges = edges
        self._rise = SoundRise()
        self._rose_at = -EATEN
        self._transcriber = transcriber
        self._settings = utterance_settings
        self._gate = gate
        self._ring = SoundRing(RING)
        self._utterance: UtteranceTranscriber | None = None
        self._evidence = SpeechEvidence()
        """Of the utterance's stretches of speech that have ended."""
        self._working = False

    @property
    def busy(self) -> bool:
        """Whether an utterance is open or being transcribed."""
        return self._utterance is not None or self._working

    @property
    def silence(self) -> int:
        """Samples since the last sound of speech; 0 in the middle of a word."""
        return samples(self._edges.silence_ms)

    def push(self, frame: NDArray[np.float32]) -> list[Noticed]:
        """Take 20 ms of sound; returns what became known about when the user speaks."""
        self._ring.push(frame)
        found = self._edges.push(self._canceller.near(frame))
        edges: list[Noticed] = [self._sooner(edge) for edge in found]
        if (rise := self._risen()) is not None:
            edges.append(rise)
            if isinstance(rise, SoundRose) and self._canceller.blind:
                self._rose_at = rise.noticed_at - 2 * FRAME
        if self._utterance is not None:
            voice_end = self._edges.last_voice if self._edges.in_speech else 0
            self._utterance.push(frame, voice_end, self._edges.voice_start)
        return edges

    def _sooner(self, edge: Edge) -> Edge:
        """A canceller that does not know yet what an echo sounds like took the beginning for one; the rise of the
        level was not fooled."""
        if not isinstance(edge, SpeechStarted):
            return edge
        rose_at, self._rose_at = self._rose_at, -EATEN  # one beginning each: what starts after it is later
        return replace(edge, at_sample=rose_at) if 0 < edge.at_sample - rose_at <= EATEN else edge

    def _risen(self) -> SoundRose | SoundFell | None:
        known = self._edges.last_frame
        if known is None:
            return None
        level = self._canceller.foreign_db
        return self._rise.push(level, known.end, probability=known.probability, suspected=self._edges.suspected)

    def played(self, sound: NDArray[np.float32]) -> None:
        """What the assistant says in this frame, before its echo can be heard."""
        self._canceller.far(sound)

    def open(self, at: int) -> None:
        """Speech began at sample `at`: a new utterance, unless one is open."""
        if self._utterance is None:
            start, sound = self._ring.since_onset(at)
            self._utterance = UtteranceTranscriber(start, sound, self._settings)
            self._evidence = SpeechEvidence()

    def pause(self, edge: SpeechEnded) -> None:
        """A stretch of speech ended."""
        self._evidence += edge.evidence

    def forget(self) -> None:
        """The utterance is over (or was nothing)."""
        self._utterance = None

    def next_job(self) -> Callable[[], Decoded] | None:
        """Sound that should be transcribed now, as a job for `receive`; one at a time."""
        utterance = self._utterance
        if utterance is None or self._working:
            return None
        job = utterance.next_job()
        if job is None:
            return None
        self._working = True

        def decode() -> Decoded:
            heard = self._transcriber.transcribe(job.pcm, job.mode, job.prefix_words)
            return Decoded(job, utterance, heard)

        return decode

    def receive(self, decoded: Decoded) -> Heard | None:
        """Take the result of a job; None if its utterance is over."""
        self._working = False
        if decoded.utterance is not self._utterance:
            return None
        transcript = self._utterance.done(decoded.job, decoded.hypothesis)
        if transcript.hypothesis is None:
            return None
        evidence = self._evidence + self._edges.evidence if self._edges.in_speech else self._evidence
        verdict = accept(transcript.hypothesis, evidence, self._gate, self._transcriber.settings.hot_words)
        accepted = verdict.accepted or bool(transcript.committed)
        return Heard(
            text=transcript.text if verdict.accepted else join_words(transcript.committed),
            stable=join_words(transcript.sure),
            until=transcript.voice_end,
            accepted=accepted,
            reason="" if verdict.accepted else verdict.reason.value,
        )

    def failed(self) -> None:
        """A job broke: the utterance is given up."""
        self._working = False
        self._utterance = None
