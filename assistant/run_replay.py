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

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.formats import probe, sound_frames
from assistant.build import Parts, converse, load
from assistant.cli.console import print_json
from assistant.cli.show import Lines
from assistant.conversation.workers import InlineWorkers, ThreadWorkers
from assistant.errors import CrosstalkError, ExitCode
from assistant.persona import Persona, load_persona
from assistant.recorder import Recorder
from assistant.replay import ClockKind, VirtualClock, WallClock, replay
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
    source = probe(request.recording)
    for path in (request.out, request.timeline, request.html):
        if path is not None:
            check_writable(path)
    persona = load_persona(request.persona)
    settings = parse_settings(request.overrides)
    paths = default_paths(persona, settings)
    if not request.as_json:
        print(f"crosstalk: {source.path.name}, {source.seconds:.1f} s ({source.kind}); loading", file=sys.stderr)
    parts = load(paths, settings)
    try:
        return replay_with(parts, persona, request)
    finally:
        parts.close()


def replay_with(parts: Parts, persona: Persona, request: ReplayRequest) -> Timeline:
    """The run itself, on loaded models."""
    show = None if request.as_json else Lines()
    record = Timeline(
        clock=request.clock.value,
        persona=persona.name,
        models=parts.names,
        sample_rate=PLAYBACK_RATE,
        source=request.recording.name,
    )
    on_event, on_turn = _sinks(record, show)
    clock = WallClock() if request.clock is ClockKind.WALL else VirtualClock()
    workers = ThreadWorkers(clock.wake) if request.clock is ClockKind.WALL else InlineWorkers()
    conversation = converse(parts, persona, workers, clock.now, on_event, on_turn)
    recorder = Recorder(request.out)
    try:
        replay(conversation, sound_frames(request.recording), clock, recorder.add)
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
    return record


def _sinks(record: Timeline, show: Lines | None) -> tuple[Callable[[Event], None], Callable[[Turn], None]]:
    def on_event(event: Event) -> None:
        record.event(event)
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
