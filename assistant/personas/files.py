"""From a name to a persona: the user's folder before the shipped one, `extends:` resolved, everything checked."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from assistant.folders import config_folder
from assistant.personas.faults import Fault, PersonaError
from assistant.personas.language import known_languages
from assistant.personas.marks import Document, read
from assistant.personas.model import Persona
from assistant.personas.sentences import faults_of
from assistant.resources import config_file

EXTENDS = "extends"
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Loaded:
    """A persona and the files it was made of, its own first."""

    persona: Persona
    files: tuple[Path, ...]


def load_persona(name: str) -> Persona:
    """The persona called `name`, the user's own before the shipped one, or the one in the YAML file `name`.

    Raises PersonaError with every fault found.
    """
    return load(name).persona


def load(name: str) -> Loaded:
    """As `load_persona`, with the files."""
    return load_file(find(name))


def load_file(path: Path) -> Loaded:
    """The persona in the file at `path`."""
    document, files = _with_parents(path, ())
    if document.data.get("name") is None:
        document.data["name"] = path.stem
    # An empty value takes back what another persona said: the field has its default again.
    data = {key: value for key, value in document.data.items() if value is not None}
    try:
        persona = Persona.model_validate(data)
    except ValidationError as error:
        raise PersonaError(faults_of(error, Persona, document)) from error
    languages = known_languages()
    if persona.language not in languages:
        place = document.place(("language",))
        near = get_close_matches(persona.language, languages, 1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        text = f"must be one of {', '.join(languages)}, not '{persona.language}'{hint}"
        raise PersonaError([Fault(place.file, place.line, "language", text)])
    return Loaded(persona, files)


def known_personas() -> list[str]:
    """The names that `load_persona` takes, the user's own among them, in alphabetical order."""
    return sorted({path.stem for folder in folders() for path in folder.glob("*.yaml")})


def folders() -> tuple[Path, Path]:
    """Where personas are looked for: the user's own before the shipped ones."""
    return config_folder() / "personas", config_file("personas")


def find(name: str) -> Path:
    """The file of a persona; PersonaError names the nearest there is."""
    if name.endswith(SUFFIXES):
        if not Path(name).is_file():
            raise PersonaError(f"there is no persona file {name}; give the name of one, or a path that exists.")
        return Path(name)
    found = _places(name)
    if not found:
        raise PersonaError(f"there is no persona '{name}'; {_nearest(name)}")
    return found[0]


def _places(name: str) -> list[Path]:
    plain = name and not set(name) & set("/\\")
    return [path for folder in folders() if plain and (path := folder / f"{name}.yaml").is_file()]


def _nearest(name: str) -> str:
    near = get_close_matches(name, known_personas(), 1)
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known_personas())}."


def _with_parents(path: Path, children: tuple[Path, ...]) -> tuple[Document, tuple[Path, ...]]:
    document = read(path)
    name = document.data.pop(EXTENDS, None)
    if name is None:
        return document, (path,)
    line = document.place((EXTENDS,)).line

    def refuse(text: str) -> PersonaError:
        return PersonaError([Fault(path, line, EXTENDS, text)])

    if not isinstance(name, str):
        raise refuse("must be the name of one persona.")
    parent = _parent(path, name)
    if parent is None:
        raise refuse(f"names no persona: '{name}'; {_nearest(name)}")
    chain = (*children, path)
    if any(parent.resolve() == known.resolve() for known in chain):
        circle = " extends ".join(known.stem for known in (*chain, parent))
        raise refuse(f"goes round in a circle: {circle}.")
    below, files = _with_parents(parent, chain)
    below.data.pop("name", None)
    return document.over(below), (path, *files)


def _parent(path: Path, name: str) -> Path | None:
    """The file that `extends: name` in `path` means. A persona may build on the shipped one of its own name."""
    if name.endswith(SUFFIXES):
        beside = path.parent / name
        return beside if beside.is_file() else None
    beside = path.with_name(f"{name}.yaml")
    found = ([beside] if name != path.stem and beside.is_file() else []) + _places(name)
    others = [place for place in found if place.resolve() != path.resolve()]
    return next(iter(others or found), None)
