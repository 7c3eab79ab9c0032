"""`crosstalk bench`: everything that is measured, one function a command. To add one, write a function below."""

from __future__ import annotations

from pathlib import Path

import typer

from assistant.replay import ClockKind

bench = typer.Typer(help="Measure: each prints its figures, or one JSON document.", no_args_is_help=True)
JSON = typer.Option(False, "--json", help="One JSON document instead of lines.")


def register(app: typer.Typer) -> None:
    app.add_typer(bench, name="bench")


@bench.command()
def voice(
    only: list[str] = typer.Option([], metavar="NAME", help="Scenarios by name or its beginning; several times."),
    repeat: int = typer.Option(1, min=1, help="Runs of each scenario: rates, not anecdotes."),
    clock: ClockKind = typer.Option(ClockKind.WALL, help="wall: real pace. virtual: computing takes no time."),
    folder: Path = typer.Option(None, help="Your own scenarios (docs/scenarios.md)."),
    out: Path = typer.Option(Path("bench-voice"), help="Folder for each run's timeline and recording."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
    as_json: bool = JSON,
) -> None:
    """Speak to the assistant in all scenarios and score how it takes turns."""
    from assistant.bench import voice_bench
    from assistant.cli.console import print_json

    chosen = voice_bench.VoiceBench(
        folder or voice_bench.SCENARIOS, tuple(only), repeat, clock, out, tuple(settings)
    )
    result = voice_bench.run(chosen)
    print_json(result) if as_json else voice_bench.show(result)


@bench.command()
def start(repeat: int = typer.Option(3, min=1, help="Starts; the median counts."), as_json: bool = JSON) -> None:
    """Time from the start of the process to listening, and the peak of its memory."""
    from assistant.bench import start_bench
    from assistant.cli.console import print_json

    result = start_bench.run(repeat)
    print_json(result) if as_json else start_bench.show(result)
