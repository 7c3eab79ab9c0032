"""YAML as people write it, with the line of every value.

Words stay words: only `true`, `false` and `null` are more than text, so that `hears: [no, off, 12:30]` means what it
says (plain YAML makes False, False and 750 of it). A key that stands twice is refused, not silently taken once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from assistant.personas.faults import Fault, PersonaError

LARGEST = 256 * 1024
MOST_VALUES = 10_000
Keys = tuple[str | int, ...]
"""The way to a value: names of fields and positions in lists."""


@dataclass(frozen=True)
class Place:
    """Where a value stands. `line` counts from 1."""

    file: Path
    line: int


@dataclass(frozen=True)
class Document:
    """A mapping and where each of its values stands."""

    data: dict[str, Any]
    places: dict[Keys, Place]

    def place(self, keys: Keys) -> Place:
        """Where `keys` lead, or as far on the way there as anything stands."""
        while keys not in self.places:
            keys = keys[:-1]
        return self.places[keys]

    def over(self, below: Document) -> Document:
        """This document laid over another: mappings are joined, anything else replaces what was there."""
        places = dict(below.places)
        data = _joined(below.data, self.data, (), places)
        return Document(data, {**places, **self.places})


def _joined(below: dict[str, Any], above: dict[str, Any], keys: Keys, places: dict[Keys, Place]) -> dict[str, Any]:
    joined = dict(below)
    for name, value in above.items():
        here = (*keys, name)
        if isinstance(value, dict) and isinstance(joined.get(name), dict):
            joined[name] = _joined(joined[name], value, here, places)
            continue
        for old in [old for old in places if old[: len(here)] == here]:
            del places[old]
        joined[name] = value
    return joined


class _Loader(yaml.SafeLoader):
    """Only the YAML 1.2 words and numbers are special."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)  # type: ignore[no-untyped-call]


def read(file: Path) -> Document:
    """The mapping in `file`. PersonaError says what is wrong, and in which line."""
    loader = None
    try:
        with file.open("rb") as opened:
            raw = opened.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise PersonaError([Fault(file, 1, "", f"is larger than {LARGEST // 1024} kB; that cannot be meant.")])
        loader = _Loader(raw.decode("utf-8-sig"))
        root = loader.get_single_node()
        reader = _Reader(file, loader)
        data = {} if root is None else reader.value(root, ())
    except OSError as error:
        raise PersonaError([Fault(file, None, "", f"cannot be read: {error.strerror or error}.")]) from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise PersonaError([Fault(file, line, "", "is not UTF-8 text; save it as UTF-8.")]) from error
    except yaml.YAMLError as error:
        raise PersonaError([_syntax(file, error)]) from error
    finally:
        if loader is not None:
            loader.dispose()  # type: ignore[no-untyped-call]
    if not isinstance(data, dict):
        raise PersonaError([Fault(file, 1, "", "must consist of fields, such as `system: You are a sailor.`")])
    reader.places.setdefault((), Place(file, 1))
    if reader.faults:
        raise PersonaError(reader.faults)
    return Document(data, reader.places)


def _syntax(file: Path, error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    hint = ""
    if "mapping values are not allowed" in problem:
        hint = " (text with a colon in it needs quotes)"
    elif "but got '?'" in problem or "but got '<scalar>'" in problem:
        hint = " (text with a comma, a colon or a question mark in [...] needs quotes)"
    elif "'\\t'" in problem:
        hint = " (indent with spaces, not with tabs)"
    return Fault(file, None if mark is None else mark.line + 1, "", f"is not valid YAML: {problem}{hint}.")


class _Reader:
    """Nodes to plain values, noting where they stand."""

    def __init__(self, file: Path, loader: _Loader) -> None:
        self._file = file
        self._loader = loader
        self._within: set[int] = set()
        self._count = 0
        self.places: dict[Keys, Place] = {}
        self.faults: list[Fault] = []

    def _refuse(self, node: yaml.Node, text: str) -> None:
        raise yaml.constructor.ConstructorError(None, None, text, node.start_mark)

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            self._refuse(node, "it holds too many values")
        if id(node) in self._within:
            self._refuse(node, "a value contains itself")
        self.places.setdefault(keys, Place(self._file, node.start_mark.line + 1))
        self._within.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, keys)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(child, (*keys, index)) for index, child in enumerate(node.value)]
            return self._loader.construct_object(node)  # type: ignore[no-untyped-call]
        finally:
            self._within.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            here = (*keys, name)
            line = key.start_mark.line + 1
            if name in found:
                before = self.places[here].line
                self.faults.append(Fault(self._file, line, dotted(here), f"stands in line {before} already."))
                continue
            self.places[here] = Place(self._file, line)
            found[name] = self.value(child, here)
        return found


def dotted(keys: Keys) -> str:
    """`("interjections", "reasons", 0, "say")` as people count: `interjections.reasons[1].say`."""
    text = ""
    for key in keys:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text
