"""All personas at a glance, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.personas.faults import Fault, PersonaError
from assistant.personas.files import find, folders, known_personas, load, load_persona


@dataclass(frozen=True)
class Entry:
    """One persona in a list. `problem` is empty unless its file is broken."""

    name: str
    description: str
    file: str
    shipped: bool
    problem: str = ""


def overview() -> list[Entry]:
    """Every persona by name; a broken file is an entry with a problem, not an end."""
    entries = []
    for name in known_personas():
        file = find(name)
        shipped = file.parent == folders()[1]
        try:
            entries.append(Entry(name, load_persona(name).description, str(file), shipped))
        except PersonaError as error:
            entries.append(Entry(name, "", str(file), shipped, str(error)))
    return entries


def problems(name: str) -> list[str]:
    """What is wrong with one persona, a line each; its voice must be known and its effects' library there."""
    try:
        loaded = load(name)
    except PersonaError as error:
        return [str(fault) for fault in error.faults] or [str(error)]
    voice = loaded.persona.voice
    found = [_voice_fault(voice.name), _effects_fault(voice.effects)]
    return [str(Fault(loaded.files[0], None, field, text)) for field, text in found if text]


def _voice_fault(name: str) -> tuple[str, str]:
    from difflib import get_close_matches
    from pathlib import Path

    from assistant.models import load_catalogue

    voices = [model.name for model in load_catalogue().models.values() if model.kind == "voice"]
    if name in voices or f"piper-{name}" in voices or name.startswith("hf:") or Path(name).is_file():
        return "", ""
    near = get_close_matches(name, voices, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(voices)}, or give an .onnx file."
    return "voice.name", f"is no voice: '{name}'; {hint}"


def _effects_fault(names: tuple[str, ...]) -> tuple[str, str]:
    from voices.effects import Effects
    from voices.errors import VoiceError

    try:
        Effects(names, 24_000)
    except VoiceError as error:
        return "voice.effects", str(error)
    return "", ""
