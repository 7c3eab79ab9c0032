"""`crosstalk devices`: the microphones and speakers."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command()(devices)


def devices(as_json: bool = typer.Option(False, "--json", help="For programs.")) -> None:
    """List microphones and speakers; use a device's name or number in the settings."""
    from dataclasses import asdict

    from assistant.audio.devices import list_devices
    from assistant.cli.console import print_json, print_table

    found = list_devices()
    if as_json:
        print_json([asdict(device) for device in found])
        return
    rows = [
        (
            str(device.index),
            device.name,
            f"{device.inputs} in" + (" (default)" if device.default_input else "") if device.inputs else "",
            f"{device.outputs} out" + (" (default)" if device.default_output else "") if device.outputs else "",
            f"{device.default_rate} Hz",
            device.host,
        )
        for device in found
    ]
    if not rows:
        typer.echo("no sound devices found")
        return
    print_table(rows, ("#", "NAME", "MICROPHONE", "SPEAKER", "RATE", "THROUGH"))
