"""`crosstalk say TEXT -o F.wav`."""

from __future__ import annotations

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    app.command()(say)


def say(
    text: str = typer.Argument(..., help="What to say; - reads it from standard input."),
    out: Path = typer.Option(None, "-o", "--out", help="A WAV file; without it the speaker is used."),
    voice: str = typer.Option("piper-joe", help="A voice of `crosstalk models list`, or a Piper .onnx file."),
    speed: float = typer.Option(1.0, min=0.5, max=2.0, help="1.5 is half as fast again."),
    as_json: bool = typer.Option(False, "--json", help="Print the words with their times."),
) -> None:
    """Speak a text."""
    import sys

    import numpy as np

    from assistant.audio.wav import WavWriter
    from assistant.cli.console import print_json
    from assistant.models import find_model
    from assistant.speak import NothingToSay, speak
    from voices import Voice

    if text == "-":
        text = sys.stdin.read()
    loaded = Voice.load(find_model(voice))
    clauses = list(speak(text, loaded, speed))
    if not clauses:
        raise NothingToSay("there is nothing in this text that could be spoken.")
    rate = clauses[0].rate
    sound = np.concatenate([clause.pcm for clause in clauses])
    if out is not None:
        with WavWriter(out, rate) as file:
            file.write(sound)
    else:
        from assistant.audio.devices import play

        play(sound, rate)
    if as_json:
        at, words = 0.0, []
        for clause in clauses:
            words += [{"text": w, "start": round(at + a, 3), "end": round(at + b, 3)} for w, a, b in clause.words]
            at += len(clause.pcm) / rate
        print_json({"file": str(out) if out else None, "seconds": round(at, 3), "words": words})
    elif out is not None:
        typer.echo(f"{out}: {len(sound) / rate:.2f} s")
