"""`crosstalk personas list | check | show | try | schema`."""

from __future__ import annotations

from pathlib import Path

import typer

commands = typer.Typer(help="The characters: list, check and try them.", no_args_is_help=True)
_JSON = typer.Option(False, "--json", help="For programs.")


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="personas")


@commands.command("list")
def list_personas(as_json: bool = _JSON) -> None:
    """Show every persona, the user's own and the shipped ones."""
    from assistant.cli.console import print_json, print_table
    from assistant.personas.overview import overview

    entries = overview()
    if as_json:
        print_json([vars(entry) for entry in entries])
        return
    rows = [(entry.name, "" if entry.shipped else "yours", entry.description or entry.problem) for entry in entries]
    print_table(rows, ("NAME", "", "ABOUT"))


@commands.command()
def check(
    names: list[str] = typer.Argument(None, metavar="[NAME]...", help="Names or YAML files; default: all there are."),
) -> None:
    """Look for mistakes: one line each with file, line, field and what is allowed."""
    from assistant.personas import PersonaError, known_personas
    from assistant.personas.overview import problems

    wrong = 0
    for name in names or known_personas():
        found = problems(name)
        wrong += len(found)
        for line in found or [f"{name}: good"]:
            typer.echo(line)
    if wrong:
        raise PersonaError(f"{wrong} {'mistake' if wrong == 1 else 'mistakes'} found.")


@commands.command()
def show(name: str, as_json: bool = _JSON) -> None:
    """Print a persona with everything it inherits, as YAML."""
    import json

    import yaml

    from assistant.cli.console import print_json
    from assistant.personas.files import load

    loaded = load(name)
    plain = json.loads(loaded.persona.model_dump_json(exclude_unset=not as_json))
    if as_json:
        print_json({**plain, "files": [str(file) for file in loaded.files]})
        return
    typer.echo("\n".join(f"# {'from' if n == 0 else 'extends'} {file}" for n, file in enumerate(loaded.files)))
    typer.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110), nl=False)


@commands.command()
def schema() -> None:
    """Print the JSON schema of a persona file, for editors."""
    from assistant.cli.console import print_json
    from assistant.personas.schema import schema as made

    print_json(made())


@commands.command("try")
def try_out(
    name: str = typer.Argument(..., help="A persona's name, or a YAML file."),
    texts: list[str] = typer.Argument(..., metavar="TEXT...", help="What you say; several are one conversation."),
    out: Path = typer.Option(None, "-o", "--out", help="Also speak the answers into a WAV file."),
    speak: bool = typer.Option(False, "--speak", help="Also speak the answers aloud."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting."),
) -> None:
    """Type to a persona and read its answers, without a microphone."""
    from assistant.personas.tryout import TryRequest, run

    run(TryRequest(name, tuple(texts), out, speak, tuple(settings)))
