"""`crosstalk replay`: a recording as the microphone."""

from __future__ import annotations

from pathlib import Path

import typer

from assistant.pace import ClockKind


def register(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    recording: Path = typer.Argument(..., metavar="IN.wav", help="Any rate, channels and format soundfile reads."),
    out: Path = typer.Option(None, help="Stereo WAV: left what was heard, right what was said."),
    timeline: Path = typer.Option(None, help="What happened, as JSON (docs/timeline.md)."),
    html: Path = typer.Option(None, help="The same as a page to look at."),
    persona: str = typer.Option("default", help="A persona's name, or a YAML file."),
    clock: ClockKind = typer.Option(ClockKind.WALL, help="wall: real pace. virtual: as fast as it goes."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
    as_json: bool = typer.Option(False, "--json", help="Print the timeline instead of the conversation."),
) -> None:
    """Play a recording into the assistant as if into its microphone, and show the conversation."""
    from assistant.run_replay import ReplayRequest, run

    run(ReplayRequest(recording, out, timeline, html, persona, clock, tuple(settings), as_json))
