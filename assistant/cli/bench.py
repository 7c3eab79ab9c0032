"""`crosstalk bench`: everything that is measured, one function a command. To add one, write a function below."""

from __future__ import annotations

from pathlib import Path

import typer

from assistant.pace import ClockKind

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


@bench.command()
def engine(
    model: str = typer.Option("smollm2-135m", help="A model of the catalogue, or a GGUF file."),
    device: str = typer.Option("cpu", help="cpu or cuda."),
    threads: int = typer.Option(1, min=1, help="CPU threads of every side."),
    rounds: int = typer.Option(5, min=1, help="Samples of each figure and side; medians count."),
    transformers: bool = typer.Option(True, help="Compare with transformers too, if it is installed."),
    only: list[str] = typer.Option([], metavar="FIGURE", help="Figures by their beginning; several times."),
    as_json: bool = JSON,
) -> None:
    """Prefill, decode, appends, forks and accuracy against llama.cpp and transformers."""
    from assistant.bench import engine_bench
    from assistant.cli.console import print_json

    chosen = engine_bench.EngineBench(_model_file(model), device, threads, rounds, transformers, tuple(only))
    result = engine_bench.run(chosen, lambda what: typer.echo(what, err=True))
    if device == "cuda":
        from assistant.bench import gpu_bench

        result["card"] = gpu_bench.run(gpu_bench.default_bench(), lambda what: typer.echo(what, err=True))
    print_json(result) if as_json else engine_bench.show(result)
    if device == "cuda" and not as_json:
        gpu_bench.show(result["card"])


@bench.command()
def parallel(
    model: str = typer.Option("smollm2-135m", help="A model of the catalogue, or a GGUF file."),
    threads: int = typer.Option(1, min=1, help="CPU threads of every side."),
    steps: list[int] = typer.Option([], metavar="N", help="Tokens each sequence has produced; several times."),
    rounds: int = typer.Option(5, min=1, help="Samples of each figure and side; medians count."),
    kv: str = typer.Option("float16", help="What our pages hold: float16, float32 or int8."),
    as_json: bool = JSON,
) -> None:
    """Eight sequences on a shared prompt: three ways of attending, and llama.cpp's two."""
    from assistant.bench import parallel_bench
    from assistant.cli.console import print_json

    chosen = parallel_bench.ParallelBench(
        _model_file(model), threads, tuple(sorted(steps)) or parallel_bench.STEPS, rounds, kv
    )
    result = parallel_bench.run(chosen, lambda what: typer.echo(what, err=True))
    print_json(result) if as_json else parallel_bench.show(result)


@bench.command()
def seeds(
    model: str = typer.Option("smollm2-135m", help="A model of the catalogue, or a GGUF file."),
    threads: int = typer.Option(1, min=1, help="CPU threads."),
    as_json: bool = JSON,
) -> None:
    """The four discussions this project grew from: shared pages, prompt cache, rolling buffer, parallel decode."""
    from assistant.cli.console import print_json
    from engine import EngineSettings
    from engine.bench import seeds as rows

    result = rows.run_seeds(
        _model_file(model), EngineSettings(threads=threads), lambda what: typer.echo(what, err=True)
    )
    print_json(result.as_json()) if as_json else typer.echo("\n".join(rows.lines(result)))


@bench.command("long-context")
def long_context(
    model: str = typer.Option("smollm2-135m", help="A model of the catalogue, or a GGUF file."),
    threads: int = typer.Option(1, min=1, help="CPU threads."),
    budget: int = typer.Option(512, min=64, help="Tokens every policy must stay within."),
    as_json: bool = JSON,
) -> None:
    """Rolling window, shift, sinks and compaction on one conversation (docs/long-context.md)."""
    from assistant.cli.console import print_json
    from engine import EngineSettings
    from engine.bench import long_context as measured

    result = measured.run_long_context(
        _model_file(model), EngineSettings(threads=threads), budget, lambda what: typer.echo(what, err=True)
    )
    print_json(result.as_json()) if as_json else typer.echo("\n".join(measured.lines(result)))


def _model_file(model: str) -> Path:
    """The file of a catalogue name, pulled if need be, or the path itself."""
    from assistant.cli.console import download_progress
    from assistant.models import Store, load_catalogue

    if Path(model).is_file():
        return Path(model)
    return Store().pull(load_catalogue().find(model), download_progress())


@bench.command()
def asr(
    folders: list[Path] = typer.Argument(None, metavar="[FOLDER]...", help="Recordings; default: Debian's."),
    model: str = typer.Option("whisper-tiny.en", help="An ASR model of `crosstalk models list`, or a folder."),
    limit: int = typer.Option(100, min=1, help="At most so many clips."),
    as_json: bool = JSON,
) -> None:
    """What the fitted encoder windows cost in words and save in time, on recordings of people."""
    from assistant.bench import asr_bench
    from assistant.cli.console import print_json

    result = asr_bench.run(model, limit, folders or ())
    print_json(result) if as_json else asr_bench.show(result)
