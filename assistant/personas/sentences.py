"""What pydantic found, in sentences for who wrote the file."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ValidationError

from assistant.personas.faults import Fault
from assistant.personas.marks import Document, Keys, dotted


def faults_of(error: ValidationError, model: type[BaseModel], document: Document) -> list[Fault]:
    """One fault for each thing wrong, in the order of the file's lines."""
    found = []
    # A field that is missing comes behind a misspelt one, which is probably the same.
    for item in sorted(error.errors(), key=lambda item: item["type"] == "missing"):
        keys: Keys = item["loc"]
        place = document.place(keys)
        found.append(Fault(place.file, place.line, dotted(keys), _sentence(dict(item), model, keys)))
    return sorted(found, key=lambda fault: (str(fault.file), fault.line or 0))


def _sentence(item: dict[str, Any], model: type[BaseModel], keys: Keys) -> str:
    kind, value = item["type"], item["input"]
    if kind == "extra_forbidden":
        known = list(_model_at(model, keys[:-1]).model_fields)
        near = get_close_matches(str(keys[-1]), known, 1)
        if not near and len(keys) == 1:  # it may belong into a group
            near = [f"{group}.{keys[0]}" for group in known if keys[0] in _fields(_annotation_at(model, (group,)))]
        return f"is no field; {_instead(near, known)}"
    if kind == "missing":
        return "is missing."
    if kind == "value_error":
        return str(item["ctx"]["error"])
    allowed, metadata = _unwrapped(_annotation_at(model, keys))
    said = f", not {_shown(value)}"
    if isinstance(allowed, type) and issubclass(allowed, Enum):
        choices = [str(member.value) for member in allowed]
        near = get_close_matches(str(value), choices, 1)
        hint = f"; did you mean '{near[0]}'?" if near and near[0] != value else "."
        return f"must be {', '.join(choices[:-1])} or {choices[-1]}{said}{hint}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty."
    return f"must be {_wanted(allowed, metadata)}{said}."


def _instead(near: list[str], known: list[str]) -> str:
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}."


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "fields of its own"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value[:40]}'" if isinstance(value, str) else str(value)


def _wanted(allowed: Any, metadata: list[Any]) -> str:
    if get_origin(allowed) is tuple:
        return "a list"
    if isinstance(allowed, type) and issubclass(allowed, BaseModel):
        return f"fields of its own ({', '.join(allowed.model_fields)})"
    if allowed is bool:
        return "true or false"
    if allowed in (int, float):
        return f"a {'whole ' if allowed is int else ''}number{_range(metadata)}"
    return "text"


def _range(metadata: list[Any]) -> str:
    low = high = ""
    for bound in metadata:
        if isinstance(bound, annotated_types.Ge):
            low = f"from {bound.ge:g}"  # type: ignore[str-format]
        elif isinstance(bound, annotated_types.Gt):
            low = f"above {bound.gt:g}"  # type: ignore[str-format]
        elif isinstance(bound, annotated_types.Le):
            high = f"to {bound.le:g}" if low.startswith("from") else f"up to {bound.le:g}"  # type: ignore[str-format]
        elif isinstance(bound, annotated_types.Lt):
            high = f"below {bound.lt:g}"  # type: ignore[str-format]
    if low.startswith("from") and not high:
        low += " on"
    between = " and " if low and not (low.startswith("from") and high.startswith("to")) else " "
    return f" {low}{between if low and high else ''}{high}" if low or high else ""


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """The bare type, without `Annotated` and `| None`, and what `Annotated` and the field said of it."""
    metadata: list[Any] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            for item in more:
                metadata += getattr(item, "metadata", [item])
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(arm for arm in get_args(annotation) if arm is not NoneType)
        else:
            return annotation, metadata


def _annotation_at(model: type[BaseModel], keys: Keys) -> Any:
    annotation: Any = model
    for key in keys:
        bare, _ = _unwrapped(annotation)
        if isinstance(key, int):
            annotation = get_args(bare)[0] if get_args(bare) else str
            continue
        field = bare.model_fields.get(key) if isinstance(bare, type) and issubclass(bare, BaseModel) else None
        if field is None:
            return str
        annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation  # type: ignore[misc]
    return annotation


def _fields(annotation: Any) -> set[str]:
    bare, _ = _unwrapped(annotation)
    return set(bare.model_fields) if isinstance(bare, type) and issubclass(bare, BaseModel) else set()


def _model_at(model: type[BaseModel], keys: Keys) -> type[BaseModel]:
    found: type[BaseModel] = _unwrapped(_annotation_at(model, keys))[0]
    return found
