"""A microphone that listens to what the assistant does: cues begin when their moment has come.

    frames() ─► conversation ─► said, events ─► played(), event() ─► when the next cue begins, echo of what was said
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.scenarios.format import Cue, Role, Scenario
from assistant.scenarios.moments import Anchor
from assistant.scenarios.room import EchoPath
from assistant.scenarios.speakers import Speakers, Utterance, bed
from assistant.timeline.events import Event, EventType

PATIENCE = 12.0
"""Seconds that a cue waits for its moment while nothing at all happens; then it is left out."""
REST = 1.0
"""Seconds of nothing after which the conversation counts as at rest."""
LONGEST_ANSWER = 90.0
"""Seconds after the last cue for which answers are waited for."""

Pcm = NDArray[np.float32]


class Talk(Protocol):
    """What the microphone may ask of the conversation it feeds."""

    @property
    def idle(self) -> bool:
        """Whether nothing is being said, understood or made."""

    @property
    def sound_left(self) -> float | None:
        """Seconds of the answer that are still to be played; None while its end is not known."""


@dataclass(frozen=True)
class Placed:
    """A cue in the recording. Samples at 16 kHz; `spans` are those of its speech."""

    cue: Cue
    role: Role
    text: str
    start: int
    spans: tuple[tuple[int, int], ...]

    @property
    def onset(self) -> float:
        """Seconds at which its speech begins."""
        return self.spans[0][0] / SAMPLE_RATE

    @property
    def end(self) -> float:
        """Seconds at which its speech ends."""
        return self.spans[-1][1] / SAMPLE_RATE


class ScenarioMicrophone:
    """One run of a scenario. `frames` and the callbacks belong to one thread."""

    def __init__(self, scenario: Scenario, speakers: Speakers) -> None:
        """Renders all cues, so that nothing slow is left for the run; raises `MissingVoice`."""
        self._scenario = scenario
        cues = scenario.user * scenario.repeat
        self._cues = [(cue, speakers.render(cue, seed)) for seed, cue in enumerate(cues)]
        self._beds = [(noise, bed(noise.sound, noise.level_db)) for noise in scenario.background]
        self._echo = EchoPath(scenario.room) if scenario.room is not None else None
        self._playing: list[tuple[int, Pcm]] = []
        self._now = 0
        """Samples given so far."""
        self._waiting_since = 0
        self._busy_until = 0
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._endpoints: list[float] = []
        self.placed: list[Placed] = []
        """The labels: where each cue lies."""
        self.missed: list[Cue] = []
        """Cues whose moment never came."""

    # --- what the assistant does ------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """Something happened."""
        match event.type:
            case EventType.ASSISTANT_SPEECH_START:
                self._starts.append(event.t if event.at is None else event.at)
            case EventType.ASSISTANT_SPEECH_END:
                self._ends.append(event.t)
            case EventType.ENDPOINT:
                self._endpoints.append(event.t)
            case _:
                return
        self._waiting_since = self._now

    def played(self, said: Pcm) -> None:
        """The assistant's sound for the frame after the last one given: 480 samples at 24 kHz."""
        if self._echo is not None:
            self._echo.push(said)

    # --- what the microphone hears ----------------------------------------------------------------------------

    def frames(self, talk: Talk) -> Iterator[Pcm]:
        """Frames of 320 samples until all cues have been said and the conversation is at rest."""
        resting = 0
        after = 0
        while True:
            if not talk.idle:
                self._busy_until = self._now
            self._begin_due(talk)
            yield self._frame()
            if self._playing or self._cues:
                resting = after = 0
                continue
            after += FRAME
            resting = resting + FRAME if talk.idle else 0
            listened = after >= self._scenario.listen * SAMPLE_RATE
            if listened and (resting >= REST * SAMPLE_RATE or after >= LONGEST_ANSWER * SAMPLE_RATE):
                return

    def _begin_due(self, talk: Talk) -> None:
        while self._cues:
            cue, utterance = self._cues[0]
            start = self._start(cue, talk)
            if start is None:
                if not talk.idle:
                    self._waiting_since = self._now
                elif self._now - self._waiting_since > PATIENCE * SAMPLE_RATE:
                    self.missed.append(cue)
                    self._cues.pop(0)
                    continue
                return
            if start >= self._now + FRAME:
                return
            self._begin(cue, utterance, max(start, self._now))

    def _begin(self, cue: Cue, utterance: Utterance, start: int) -> None:
        self._cues.pop(0)
        self._playing.append((start, utterance.pcm))
        self._waiting_since = self._now
        spans = tuple((a + start, b + start) for a, b in utterance.spans)
        self.placed.append(Placed(cue, cue.kind, utterance.text, start, spans))

    def _start(self, cue: Cue, talk: Talk) -> int | None:
        """The sample at which `cue` begins, None while that is not known."""
        moment = cue.at
        last = self.placed[-1] if self.placed else None
        since = last.onset if last is not None else 0.0
        base: float | None
        match moment.anchor:
            case Anchor.BEGINNING:
                base = 0.0
            case Anchor.USER_STARTS:
                base = last.onset if last is not None else 0.0
            case Anchor.USER_ENDS:
                base = last.end if last is not None else 0.0
            case Anchor.QUIET:
                quiet = talk.idle and not self._playing
                base = max(self._busy_until / SAMPLE_RATE, last.end if last is not None else 0.0) if quiet else None
            case Anchor.ASSISTANT_STARTS:
                base = _first_after(self._starts, since)
            case Anchor.ENDPOINT:
                base = _first_after(self._endpoints, since)
            case Anchor.ASSISTANT_ENDS:
                base = _first_after(self._ends, since)
                if moment.offset < 0:
                    return self._before_the_end(-moment.offset, since, talk)
        return None if base is None else round((base + moment.offset) * SAMPLE_RATE)

    def _before_the_end(self, lead: float, since: float, talk: Talk) -> int | None:
        left = talk.sound_left
        if left is None or left > lead or not any(start > since for start in self._starts):
            return None
        return self._now

    def _frame(self) -> Pcm:
        out = np.zeros(FRAME, np.float32)
        start, end = self._now, self._now + FRAME
        for noise, sound in self._beds:
            first = round(noise.start * SAMPLE_RATE)
            last = end if noise.seconds is None else first + round(noise.seconds * SAMPLE_RATE)
            if first < end and start < last:
                out += np.take(sound, np.arange(start - first, end - first), mode="wrap")
        for at, pcm in self._playing:
            piece = pcm[max(0, start - at) : end - at]
            out[max(0, at - start) : max(0, at - start) + piece.size] += piece
        self._playing = [(at, pcm) for at, pcm in self._playing if at + pcm.size > end]
        if self._echo is not None:
            out += self._echo.pull()
        self._now = end
        return np.clip(out, -1.0, 1.0)


def _first_after(times: list[float], since: float) -> float | None:
    return next((time for time in times if time > since), None)
