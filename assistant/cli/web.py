"""`crosstalk web`: the assistant as a page in the browser."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command()(web)


def web(
    port: int = typer.Option(0, min=0, max=65_535, help="0: any free port."),
    sessions: int = typer.Option(1, min=1, max=64, help="How many people may talk at once, each for themselves."),
    persona: str = typer.Option("default", help="A persona's name, or a YAML file."),
    open_browser: bool = typer.Option(False, "--open", help="Open the page in the default browser."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
) -> None:
    """Serve a page on this machine: talk through the browser's microphone and speaker."""
    from assistant.web.run import WebRequest, run

    run(WebRequest(port, sessions, persona, tuple(settings), open_browser))
