"""`crosstalk transcribe F.wav`."""

from __future__ import annotations

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    app.command()(transcribe)


def transcribe(
    recording: Path = typer.Argument(..., metavar="F.wav", help="Any sound file."),
    model: str = typer.Option("whisper-tiny.en", help="An ASR model of `crosstalk models list`, or a folder."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting, e.g. vad.kind."),
    as_json: bool = typer.Option(False, "--json", help="Pieces with their times."),
) -> None:
    """Write down what is said in a recording; silence and noise give nothing."""
    from dataclasses import asdict

    from assistant.audio.formats import probe, sound_frames
    from assistant.cli.console import print_json
    from assistant.ears.transcriber import Transcriber
    from assistant.models import find_model
    from assistant.settings import parse_settings
    from assistant.transcribe import transcribe as pieces_of

    probe(recording)  # a bad file should not cost the loading of a model
    tree = parse_settings(settings)
    transcriber = Transcriber.load(find_model(model), tree.asr)
    pieces = []
    for piece in pieces_of(sound_frames(recording), transcriber, tree.vad, tree.gate):
        pieces.append(piece)
        if not as_json:
            typer.echo(f"{piece.start:8.2f} {piece.end:8.2f}  {piece.text}")
    if as_json:
        print_json({"text": " ".join(piece.text for piece in pieces), "pieces": [asdict(piece) for piece in pieces]})
