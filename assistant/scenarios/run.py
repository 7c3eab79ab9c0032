"""Run a scenario through the real assistant and keep what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.build import Parts, converse
from assistant.conversation.interjecting import Scorer
from assistant.conversation.workers import InlineWorkers, ThreadWorkers
from assistant.personas import load_persona
from assistant.recorder import Recorder
from assistant.replay import ClockKind, VirtualClock, WallClock, replay
from assistant.scenarios.format import Scenario
from assistant.scenarios.microphone import ScenarioMicrophone, Talk
from assistant.scenarios.score import Run
from assistant.scenarios.speakers import Speakers
from assistant.scenarios.trace import Tape
from assistant.settings import merged, parse_overrides
from assistant.timeline.events import Event
from assistant.timeline.record import Timeline, write_json
from voices import Voice

Pcm = NDArray[np.float32]


@dataclass(frozen=True)
class Files:
    """Where a run's files go."""

    timeline: Path
    recording: Path


def files_in(folder: Path, name: str) -> Files:
    """The files of the run called `name`."""
    return Files(folder / f"{name}.json", folder / f"{name}.wav")


def speakers_of(parts: Parts, folder: Path | None = None) -> Speakers:
    """Voices for the users of scenarios, the assistant's own (at another pitch) among them."""
    return Speakers(lambda text, speed: parts.voice.synthesize(text, speed=speed), folder)


class Session:
    """One run: a microphone that listens to the assistant, and the tape that its scoring needs."""

    def __init__(self, scenario: Scenario, parts: Parts, speakers: Speakers) -> None:
        """Raises `MissingVoice` if this machine lacks a voice for it."""
        self._scenario = scenario
        self._microphone = ScenarioMicrophone(scenario, speakers)
        self._tape = Tape(parts.voice)
        self._said: list[Pcm] = []
        settings = merged(parts.settings, parse_overrides(scenario.settings), scenario.name)
        self.parts = replace(parts, voice=cast(Voice, self._tape), settings=settings)
        """What the conversation has to be built from."""

    def frames(self, conversation: Talk) -> Iterator[Pcm]:
        """The microphone; it needs to be told of every event and frame."""
        return self._microphone.frames(conversation)

    def event(self, event: Event) -> None:
        """Something happened."""
        self._microphone.event(event)

    def frame(self, said: Pcm) -> None:
        """What the assistant said in one frame."""
        self._microphone.played(said)
        self._said.append(said.copy())

    def run(self, record: Timeline) -> Run:
        """What came of it, for scoring."""
        said = np.stack(self._said) if self._said else np.zeros((0, PLAYBACK_FRAME), np.float32)
        microphone = self._microphone
        return Run(self._scenario, record, tuple(microphone.placed), len(microphone.missed), said, self._tape.takes)


def run_scenario(
    parts: Parts,
    scenario: Scenario,
    speakers: Speakers,
    clock_kind: ClockKind = ClockKind.WALL,
    files: Files | None = None,
    scorer: Scorer | None = None,
) -> Run:
    """One run on loaded models; `scorer` replaces the model's opinion of when to cut in. Raises `MissingVoice` if this
    machine lacks a voice for it."""
    session = Session(scenario, parts, speakers)
    persona = load_persona(scenario.persona)
    clock = WallClock() if clock_kind is ClockKind.WALL else VirtualClock()
    workers = ThreadWorkers(clock.wake) if clock_kind is ClockKind.WALL else InlineWorkers()
    record = Timeline(clock_kind.value, persona.name, parts.names, PLAYBACK_RATE, source=scenario.name)

    def on_event(event: Event) -> None:
        record.event(event)
        session.event(event)

    conversation = converse(session.parts, persona, workers, clock.now, on_event, record.turn, scorer=scorer)
    if persona.greeting:
        conversation.greet(persona.greeting)
    recorder = Recorder(files.recording if files is not None else None)

    def on_frame(heard: Pcm, said: Pcm) -> None:
        recorder.add(heard, said)
        session.frame(said)

    try:
        replay(conversation, session.frames(conversation), clock, on_frame)
        record.complete = True
    finally:
        conversation.close()
        record.duration = recorder.frames * FRAME / SAMPLE_RATE
        recorder.close()
        if files is not None:
            write_json(files.timeline, record)
    return session.run(record)
