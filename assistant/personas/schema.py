"""The persona file as a JSON schema, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

from assistant.personas.model import Persona


def schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a persona file. An empty value is allowed anywhere at the top: it takes back what
    the persona that is extended says."""
    from assistant.personas.language import known_languages
    from voices.effects import EFFECTS

    made = Persona.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "Crosstalk persona"
    fields = made["properties"]
    fields["language"]["enum"] = known_languages()
    made["$defs"]["VoiceChoice"]["properties"]["effects"]["items"] = {
        "enum": list(EFFECTS),
        "description": "; ".join(f"{name}: {effect.description}" for name, effect in EFFECTS.items()),
    }
    for name, field in fields.items():
        fields[name] = {"anyOf": [{"type": "null"}, field]} | _kept(field)
    fields["extends"] = {
        "type": "string",
        "description": "Another persona: what this file leaves out is as there; fields of a group are joined.",
    }
    del made["required"]
    made["anyOf"] = [{"required": ["system"]}, {"required": ["extends"]}]
    return made


def _kept(field: dict[str, Any]) -> dict[str, Any]:
    return {key: field[key] for key in ("description", "default") if key in field}
