"""The whole tree of settings, and the models it names.

Each room keeps its own part as a frozen dataclass beside the code that obeys it; here they come together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from assistant.build import AssistantSettings, ModelPaths
from assistant.folders import config_folder
from assistant.llm_openai.choice import LlmKind
from assistant.models import find_model
from assistant.mouth import voice_reference
from assistant.personas import Persona
from assistant.settings.nested import merged
from assistant.settings.sources import parse_overrides, read_settings


@dataclass(frozen=True)
class ModelChoice:
    """Names of `crosstalk models list`, hf:OWNER/REPO/FILE, or paths."""

    llm: str = "smollm2-135m"
    asr: str = "whisper-tiny.en"
    voice: str | None = None
    """None: the persona's own."""


@dataclass(frozen=True)
class AudioChoice:
    """Sound devices by name or number as `crosstalk devices` lists them; None is the system's default."""

    microphone: str | int | None = None
    speaker: str | int | None = None


@dataclass(frozen=True)
class Settings(AssistantSettings):
    """Everything that may be set: `crosstalk doctor --settings` prints it, `--set` changes it."""

    models: ModelChoice = field(default_factory=ModelChoice)
    audio: AudioChoice = field(default_factory=AudioChoice)


def settings_file() -> Path:
    """The user's own settings; it need not exist."""
    return config_folder() / "settings.yaml"


def parse_settings(overrides: Iterable[str] = ()) -> Settings:
    """Defaults, then the user's settings.yaml, then `key=value` overrides; SettingsError names source and field."""
    tree = merged(Settings(), read_settings(settings_file()), str(settings_file()))
    return merged(tree, parse_overrides(overrides), "--set")


def voice_of(persona: Persona, settings: Settings) -> str:
    """The voice's name in the catalogue: the settings' choice, else the persona's, where "joe" means "piper-joe"."""
    return voice_reference(settings.models.voice or persona.voice.name)


def default_paths(persona: Persona, settings: Settings) -> ModelPaths:
    """Where the chosen models lie; NotPulled and UnknownModel say what to run."""
    elsewhere = settings.llm.kind is LlmKind.OPENAI
    return ModelPaths(
        llm=Path(settings.llm.model) if elsewhere else find_model(settings.models.llm),
        asr=find_model(settings.models.asr),
        voice=find_model(voice_of(persona, settings)),
        one_voice=settings.models.voice is not None,
    )
