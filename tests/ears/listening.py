"""The ears put together on a virtual clock, where a decode takes no time: for the tests of this room."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assistant.audio.constants import FRAME, samples
from assistant.ears.edges import SpeechEdges, SpeechEnded, SpeechStarted
from assistant.ears.evidence import SpeechEvidence
from assistant.ears.gate import Verdict, accept
from assistant.ears.preroll import SoundRing
from assistant.ears.stabiliser import bare
from assistant.ears.transcriber import Transcriber
from assistant.ears.utterance import DecodeJob, Transcript, UtteranceTranscriber


@dataclass
class Utterance:
    """What was made of one stretch of speech and the pauses in it."""

    transcript: Transcript
    verdict: Verdict
    started: int
    ended_after: int
    """Sample at which the endpoint was decided."""
    jobs: list[DecodeJob] = field(default_factory=list)
    windows: list[float] = field(default_factory=list)
    shown: list[Transcript] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return [bare(word) for word in self.transcript.words]


def listen(
    pcm: np.ndarray, transcriber: Transcriber, endpoint_ms: int = 700, edges: SpeechEdges | None = None
) -> list[Utterance]:
    """All utterances of a recording; an endpoint is so much silence."""
    edges = edges or SpeechEdges()
    ring = SoundRing(samples(2_000))
    found: list[Utterance] = []
    current: UtteranceTranscriber | None = None
    evidence = SpeechEvidence()
    jobs: list[DecodeJob] = []
    windows: list[float] = []
    shown: list[Transcript] = []
    started = 0

    def work(job: DecodeJob) -> None:
        assert current is not None
        heard = transcriber.transcribe(job.pcm, job.mode, job.prefix_words)
        jobs.append(job)
        windows.append(heard.window_s)
        shown.append(current.done(job, heard))

    def close(now: int) -> None:
        assert current is not None
        while (job := current.final_job()) is not None:
            work(job)
        heard = current.transcript.hypothesis
        assert heard is not None
        verdict = accept(heard, evidence, hot_words=transcriber.settings.hot_words)
        found.append(Utterance(current.transcript, verdict, started, now, jobs[:], windows[:], shown[:]))

    for at in range(0, len(pcm) - FRAME + 1, FRAME):
        frame = pcm[at : at + FRAME]
        ring.push(frame)
        for edge in edges.push(frame):
            if isinstance(edge, SpeechEnded):
                evidence += edge.evidence
            elif isinstance(edge, SpeechStarted) and current is None:
                started = edge.at_sample
                current = UtteranceTranscriber(*ring.since_onset(started))
                evidence = SpeechEvidence()
                for things in (jobs, windows, shown):
                    things.clear()
        if current is None:
            continue
        if current.end <= at:
            current.push(frame, edges.last_voice, edges.voice_start)
        while (job := current.next_job()) is not None:
            work(job)
        if not edges.in_speech and at + FRAME - edges.last_voice >= samples(endpoint_ms):
            close(at + FRAME)
            current = None
    if current is not None:
        for edge in edges.finish():
            if isinstance(edge, SpeechEnded):
                evidence += edge.evidence
        close(len(pcm))
    return found


def accepted(utterances: list[Utterance]) -> list[str]:
    """The texts that become turns."""
    return [utterance.transcript.text for utterance in utterances if utterance.verdict.accepted]
