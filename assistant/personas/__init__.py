"""Characters as data: one YAML file each, in `configs/personas/` or the user's configuration folder."""

from assistant.personas.faults import Fault, PersonaError
from assistant.personas.files import known_personas, load_persona
from assistant.personas.model import (
    ContextChoice,
    Example,
    InterjectionChoice,
    Interruptibility,
    Persona,
    ReasonChoice,
    SamplingChoice,
    SilenceChoice,
    VoiceChoice,
)

__all__ = [
    "ContextChoice",
    "Example",
    "Fault",
    "InterjectionChoice",
    "Interruptibility",
    "Persona",
    "PersonaError",
    "ReasonChoice",
    "SamplingChoice",
    "SilenceChoice",
    "VoiceChoice",
    "known_personas",
    "load_persona",
]
