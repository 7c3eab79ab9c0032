"""All commands in one place. To add one: a file here with `register(app)`, and its name in the two lines below."""

from __future__ import annotations

import typer

from assistant.cli import bench, chat, daemon, devices, doctor, models, personas, replay, say, transcribe, web

app = typer.Typer(
    name="crosstalk",
    help="A voice assistant on your own machine: talk to it, and cut in when you like.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 input file, 4 output file, 5 network, 6 sound device, "
    "7 model, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from assistant import __version__

        typer.echo(f"crosstalk {__version__}")
        raise typer.Exit()


@app.callback()
def crosstalk(
    version: bool = typer.Option(
        False, "--version", help="Print the version and leave.", is_eager=True, callback=_print_version
    ),
) -> None: ...


for command in (chat, web, daemon, replay, say, transcribe, personas, models, devices, doctor, bench):
    command.register(app)
