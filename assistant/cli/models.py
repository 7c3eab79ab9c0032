"""`crosstalk models list | pull NAME | path NAME | remove NAME`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

commands = typer.Typer(help="The models: which there are, which are here.", no_args_is_help=True)
_JSON = typer.Option(False, "--json", help="For programs.")


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="models")


@commands.command("list")
def list_models(as_json: bool = _JSON) -> None:
    """Show every model the catalogue knows, and whether it is on this machine."""
    from assistant.cli.console import megabytes, print_json, print_table
    from assistant.models import Store, load_catalogue

    store = Store()
    models = list(load_catalogue().models.values())
    if as_json:
        print_json(
            [
                {
                    "name": model.name,
                    "kind": model.kind,
                    "default": model.default,
                    "present": store.has(model),
                    "path": str(store.path(model)) if store.has(model) else None,
                    "download_bytes": model.download,
                    "size_bytes": model.size,
                    "licence": model.licence,
                    "about": model.about,
                }
                for model in models
            ]
        )
        return
    rows = [
        (
            model.name,
            model.kind,
            "here" if store.has(model) else f"{megabytes(model.download)} to fetch",
            "default" if model.default else "",
            model.licence,
            model.about,
        )
        for model in models
    ]
    print_table(rows, ("NAME", "KIND", "STATE", "", "LICENCE", "ABOUT"))


@commands.command()
def pull(
    names: list[str] = typer.Argument(None, metavar="[NAME]...", help="Default: what a first conversation needs."),
    as_json: bool = _JSON,
) -> None:
    """Fetch models that are not here yet: names from `models list`, or hf:OWNER/REPO/FILE."""
    from assistant.cli.console import download_progress, print_json
    from assistant.models import Store, load_catalogue

    catalogue, store, progress = load_catalogue(), Store(), download_progress()
    # All names are looked up first: a misspelt third one should not cost the download of two.
    models = [catalogue.find(name) for name in names] if names else catalogue.defaults()
    pulled = []
    for model in models:
        fetched = not store.has(model)
        path = store.pull(model, progress)
        if path.suffix == ".gguf":
            _compile_kernels(path)
        pulled.append({"name": model.name, "path": str(path), "fetched": fetched})
        if not as_json:
            typer.echo(f"{model.name}: {'fetched' if fetched else 'already here'}, {path}")
    if as_json:
        print_json(pulled)


def _compile_kernels(path: Path) -> None:
    """Once a machine: what the model needs is compiled now, with progress, instead of at the first conversation."""
    from engine.errors import EngineError
    from engine.loading import read_model
    from kernels.contract import KernelError
    from kernels.cpu import warm_up

    def say(text: str, end: str = "\n") -> None:
        print(f"kernels: {text}", end=end, file=sys.stderr, flush=True)

    def tell(what: str, done: int, total: int) -> None:
        if done in (0, total):
            say("ready" if done else f"preparing {total} parts, compiled once a machine")
        elif sys.stderr.isatty():
            say(f"{done} of {total}", end="\r")

    try:
        warm_up(read_model(path).weights, tell)
    except (EngineError, KernelError) as error:
        say(f"not prepared: {error}")  # the file is here, as was asked; loading it will say the same


@commands.command()
def path(name: str, as_json: bool = _JSON) -> None:
    """Print where a model lies (exit code 7 if it is not here)."""
    from assistant.cli.console import print_json
    from assistant.models import find_model

    found = find_model(name)
    if as_json:
        print_json({"name": name, "path": str(found)})
    else:
        typer.echo(found)


@commands.command()
def remove(names: list[str]) -> None:
    """Take models off this machine."""
    from assistant.models import Store, load_catalogue

    catalogue, store = load_catalogue(), Store()
    for model in [catalogue.find(name) for name in names]:
        store.remove(model)
        typer.echo(f"{model.name}: not on this machine any more")
