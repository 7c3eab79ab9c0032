"""`crosstalk doctor`."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
    show_settings: bool = typer.Option(False, "--settings", help="Print every setting as well."),
    as_json: bool = typer.Option(False, "--json", help="For programs."),
) -> None:
    """Check models, devices and each stage with its time, and say what to do about each failure."""
    import sys
    from dataclasses import asdict

    from assistant.cli.console import print_json
    from assistant.doctor import State, examine

    checks = []
    for check in examine(settings):
        checks.append(check)
        if not as_json:
            time = f"{check.seconds:6.2f} s"
            print(f"{check.state.value:8} {check.name:16}{time}  {check.detail}", flush=True)
            if check.advice:
                print(f"{'':34}-> {check.advice}", flush=True)
    failed = sum(check.state is State.FAILED for check in checks)
    known = any(check.name == "settings" and check.state is State.OK for check in checks)
    tree = _tree(settings) if known and (show_settings or as_json) else None
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(check) for check in checks], "settings": tree})
    elif tree is not None:
        from assistant.settings import flat

        for name, value in flat(tree).items():
            print(f"{name} = {value}")
    if failed:
        sys.exit(1)


def _tree(overrides: list[str]) -> dict[str, object]:
    from assistant.settings import parse_settings, plain

    tree: dict[str, object] = plain(parse_settings(overrides))
    return tree
