"""One run of `crosstalk replay`, from the command line's wishes to files on disk.

Whatever ends the run (the end of the recording, Ctrl-C, a full disk), what happened until then is written and valid.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.formats import probe, sound_frames
from assistant.build import Parts, converse, load
from assistant.cli.console import print_json
from assistant.cli.show import Lines
from assistant.conversation.workers import InlineWorkers, ThreadWorkers
from assistant.errors import CrosstalkError, ExitCode
from assistant.personas import Persona, load_persona
from assistant.recorder import Recorder
from assistant.replay import ClockKind, VirtualClock, WallClock, replay
from assistant.scenarios.expect import failures
from assistant.scenarios.format import SUFFIXES, Scenario, load_scenario
from assistant.scenarios.run import Session, speakers_of
from assistant.scenarios.score import score
from assistant.settings import default_paths, parse_settings
from assistant.timeline.events import Event, Turn
from assistant.timeline.html import render
from assistant.timeline.record import Timeline, write_json, write_text


class OutputError(CrosstalkError):
    """A result cannot be written where it was asked for."""

    exit_code = ExitCode.OUTPUT


@dataclass(frozen=True)
class ReplayRequest:
    """What the user asked for."""

    recording: Path
    out: Path | None = None
    timeline: Path | None = None
    html: Path | None = None
    persona: str = "default"
    clock: ClockKind = ClockKind.WALL
    overrides: tuple[str, ...] = ()
    as_json: bool = False


def run(request: ReplayRequest) -> Timeline:
    """Do it. Raises one-line errors for a bad recording, persona, setting or output before any model is loaded."""
    scenario = load_scenario(request.recording) if request.recording.suffix in SUFFIXES else None
    about = _about(request.recording) if scenario is None else f"the scenario {scenario.name}"
    for path in (request.out, request.timeline, request.html):
        if path is not None:
            check_writable(path)
    own = scenario is not None and request.persona == "default"
    persona = load_persona(scenario.persona if scenario is not None and own else request.persona)
    settings = parse_settings(request.overrides)
    paths = default_paths(persona, settings)
    if not request.as_json:
        print(f"crosstalk: {about}; loading", file=sys.stderr)
    parts = load(paths, settings)
    try:
        return replay_with(parts, persona, request, scenario)
    finally:
        parts.close()


def _about(path: Path) -> str:
    info = probe(path)
    next(sound_frames(path))  # a file without sound is refused before the models are loaded
    return f"{info.path.name}, {info.seconds:.1f} s ({info.kind})"


def replay_with(
    parts: Parts, persona: Persona, request: ReplayRequest, scenario: Scenario | None = None
) -> Timeline:
    """The run itself, on loaded models. A scenario is a microphone that listens to the answers."""
    folder = request.recording.parent
    session = Session(scenario, parts, speakers_of(parts, folder)) if scenario is not None else None
    parts = parts if session is None else session.parts
    show = None if request.as_json else Lines()
    record = Timeline(
        clock=request.clock.value,
        persona=persona.name,
        models=parts.names,
        sample_rate=PLAYBACK_RATE,
        source=request.recording.name,
    )
    on_event, on_turn = _sinks(record, show, session)
    clock = WallClock() if request.clock is ClockKind.WALL else VirtualClock()
    workers = ThreadWorkers(clock.wake) if request.clock is ClockKind.WALL else InlineWorkers()
    conversation = converse(parts, persona, workers, clock.now, on_event, on_turn)
    if persona.greeting:
        conversation.greet(persona.greeting)
    recorder = Recorder(request.out)

    def on_frame(heard: NDArray[np.float32], said: NDArray[np.float32]) -> None:
        recorder.add(heard, said)
        if session is not None:
            session.frame(said)

    frames = sound_frames(request.recording) if session is None else session.frames(conversation)
    try:
        replay(conversation, frames, clock, on_frame)
        record.complete = True
    except KeyboardInterrupt:
        print("crosstalk: stopped; what was said so far is kept", file=sys.stderr)
        raise
    finally:
        conversation.close()
        record.duration = recorder.frames * FRAME / SAMPLE_RATE
        recorder.close()
        _write(record, recorder, request)
    if request.as_json:
        print_json(record.as_json())
    elif session is not None:
        missed = failures(run := session.run(record), score(run))
        print("\n".join(f"-- not as wished: {line}" for line in missed) or "-- all as the scenario wishes")
    return record


def _sinks(
    record: Timeline, show: Lines | None, session: Session | None
) -> tuple[Callable[[Event], None], Callable[[Turn], None]]:
    def on_event(event: Event) -> None:
        record.event(event)
        if session is not None:
            session.event(event)
        if show is not None:
            show.event(event)

    def on_turn(turn: Turn) -> None:
        record.turn(turn)
        if show is not None:
            show.turn(turn)

    return on_event, on_turn


def _write(record: Timeline, recorder: Recorder, request: ReplayRequest) -> None:
    try:
        if request.timeline is not None:
            write_json(request.timeline, record)
        if request.html is not None:
            write_text(request.html, render(record, recorder.heard.peaks(), recorder.said.peaks()))
    except OSError as error:
        raise OutputError(f"cannot write {error.filename or 'the results'}: {error.strerror or error}.") from error


def check_writable(path: Path) -> None:
    """Raise a one-line error unless a file can be made at `path`."""
    folder = path.parent
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give a file name.")
    if not folder.is_dir():
        raise OutputError(f"there is no folder {folder}; make it, or write somewhere else.")
    try:
        if path.exists():
            with path.open("ab"):
                pass
        handle, name = tempfile.mkstemp(dir=folder, prefix=".crosstalk-")
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from error
