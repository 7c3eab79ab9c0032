"""Nested frozen dataclasses changed by nested mappings, with complaints that name the field."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from assistant.errors import CrosstalkError, ExitCode

T = TypeVar("T")


class SettingsError(CrosstalkError):
    """A setting is unknown or has an impossible value."""

    exit_code = ExitCode.USAGE


@dataclasses.dataclass(frozen=True)
class Typed:
    """A value typed on the command line: as YAML reads it, and as it stands."""

    parsed: Any
    text: str


def merged(tree: T, values: Mapping[str, Any], source: str) -> T:
    """`tree` with `values` in place of its own; SettingsError begins with `source` and names the field.

    All of `values` change at once, so those that must fit each other can be changed together.
    """
    try:
        return _merged(tree, values, "")
    except SettingsError as error:
        raise SettingsError(f"{source}: {error}") from error


def _merged(tree: T, values: Mapping[str, Any], where: str) -> T:
    hints = typing.get_type_hints(type(tree))
    known = [f.name for f in dataclasses.fields(typing.cast(Any, tree)) if f.init]
    changes: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{where}{name}"
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean '{where}{near[0]}'?" if near else f"there are: {', '.join(known)}."
            raise SettingsError(f"'{path}' is no setting; {hint}")
        present = getattr(tree, name)
        if dataclasses.is_dataclass(present):
            if not isinstance(value, Mapping):
                first = dataclasses.fields(present)[0].name
                raise SettingsError(f"'{path}' holds settings of its own; set one of them, e.g. '{path}.{first}'.")
            changes[name] = _merged(present, value, f"{path}.")
        else:
            changes[name] = _checked(hints[name], value, path)
    return dataclasses.replace(typing.cast(Any, tree), **changes)


def _checked(hint: Any, value: Any, path: str) -> Any:
    from pydantic import TypeAdapter, ValidationError

    # YAML's reading first ("2", "[a, b]", "null"), then the plain text: "off" may be a word and "12" a name.
    attempts = [value.parsed, value.text] if isinstance(value, Typed) else [value]
    complaint = ""
    for attempt in attempts:
        try:
            return TypeAdapter(hint).validate_python(attempt)
        except ValidationError as error:
            complaint = complaint or error.errors()[0]["msg"]
    raise SettingsError(f"'{path}' cannot be {attempts[-1]!r}: {complaint[:1].lower()}{complaint[1:]}.")


def plain(value: Any) -> Any:
    """The tree as mappings, lists and scalars, for JSON and YAML."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def flat(tree: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The leaves of a plain tree by their dotted names."""
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        leaves |= flat(value, f"{where}{name}.") if isinstance(value, Mapping) else {f"{where}{name}": value}
    return leaves
