"""`crosstalk chat`: talk at this machine's microphone and speaker."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command()(chat)


def chat(
    persona: str = typer.Option("default", help="A persona's name, or a YAML file."),
    text: bool = typer.Option(False, "--text", help="Type instead of talking: no microphone is opened."),
    silent: bool = typer.Option(False, "--silent", help="Answers are shown and not spoken."),
    plain: bool = typer.Option(False, "--plain", help="Lines instead of the full screen (as in a pipe)."),
    microphone: str = typer.Option(None, help="Name or number of `crosstalk devices`."),
    speaker: str = typer.Option(None, help="Name or number of `crosstalk devices`."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
) -> None:
    """Talk with the assistant; cut in whenever you like."""
    from assistant.chat.run import ChatRequest, run

    run(ChatRequest(persona, plain, text, silent, microphone, speaker, tuple(settings)))
