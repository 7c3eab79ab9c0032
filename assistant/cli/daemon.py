"""`crosstalk daemon` and `crosstalk ctl`: the assistant as a service, and how to talk to it."""

from __future__ import annotations

from pathlib import Path

import typer

daemon = typer.Typer(help="The assistant as a service: no screen, no terminal.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.add_typer(daemon, name="daemon")
    app.command()(ctl)


@daemon.callback()
def serve(
    context: typer.Context,
    config: Path | None = typer.Option(None, help="A YAML file; by default daemon.yaml in the settings folder."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
) -> None:
    """Listen and answer until SIGTERM, Ctrl-C or `crosstalk ctl shutdown`."""
    if context.invoked_subcommand is not None:
        return
    from assistant.daemon.run import DaemonRequest, run

    run(DaemonRequest(config, tuple(settings)))


@daemon.command()
def install(
    user: bool = typer.Option(False, "--user", help="A service of your own, beside your sound server."),
    system: bool = typer.Option(False, "--system", help="A service of the machine, with a user of its own; as root."),
    show: bool = typer.Option(False, "--print", help="Show the unit instead of writing it."),
    config: Path | None = typer.Option(None, help="The config file it is to read."),
) -> None:
    """Write a systemd unit and say how to start it."""
    from assistant.daemon.unit import install_unit

    install_unit(user=user, system=system, show=show, config=config)


def ctl(
    command: str = typer.Argument(help="status, mute, unmute, stop, say, ask, persona, reload, save or shutdown."),
    words: list[str] = typer.Argument(None, help="What to say or ask, or the persona's name."),
    socket: Path | None = typer.Option(None, help="The daemon's control socket."),
    as_json: bool = typer.Option(False, "--json", help="Print the daemon's answer as it is."),
    wait: bool = typer.Option(True, "--wait/--no-wait", help="ask: wait for the answer."),
) -> None:
    """Control a running daemon."""
    from assistant.daemon.ctl import run_ctl

    run_ctl(command, " ".join(words or []), socket, as_json=as_json, wait=wait)
