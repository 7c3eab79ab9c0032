"""Characters as data: one YAML file each, in `configs/personas/` or the user's configuration folder."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assistant.audio.constants import SAMPLE_RATE
from assistant.errors import CrosstalkError, ExitCode
from assistant.folders import config_folder
from assistant.interjection import Eagerness, InterjectionRules, Reason, SilenceRules
from assistant.resources import config_file
from engine import Sampling


class PersonaError(CrosstalkError):
    """A persona that is not there or says something impossible."""

    exit_code = ExitCode.USAGE


class Example(BaseModel):
    """One exchange that shows the model how the character answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user: str
    assistant: str


class SamplingChoice(BaseModel):
    """How words are chosen; temperature 0 is greedy."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    temperature: float = Field(0.0, ge=0.0, le=2.0)
    top_k: int = Field(0, ge=0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    min_p: float = Field(0.0, ge=0.0, lt=1.0)
    repetition_penalty: float = Field(1.0, ge=1.0, le=2.0)


class VoiceChoice(BaseModel):
    """What the character sounds like."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = "piper-joe"
    speed: float = Field(1.0, ge=0.5, le=2.0)


class ReasonChoice(BaseModel):
    """A reason to cut in on the user, and what is said then."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    say: str
    hears: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    after: float | None = Field(None, gt=0)
    judged: bool = False
    only_say: bool = False


class InterjectionChoice(BaseModel):
    """Whether and why the character cuts in while the user speaks; times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    eagerness: Eagerness = Eagerness.OFF
    reasons: tuple[ReasonChoice, ...] = ()
    cooldown: float = Field(20.0, ge=0)
    per_ten_minutes: int = Field(6, ge=1)
    insist: bool = False

    def rules(self, listening_noises: bool) -> InterjectionRules:
        """The same as the conversation obeys it."""
        return InterjectionRules(
            eagerness=self.eagerness,
            reasons=tuple(Reason(**reason.model_dump()) for reason in self.reasons),
            cooldown=round(self.cooldown * SAMPLE_RATE),
            per_ten_minutes=self.per_ten_minutes,
            insist=self.insist,
            listening_noises=listening_noises,
        )


class SilenceChoice(BaseModel):
    """What the character says into a long silence; `after` in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    after: float = Field(30.0, gt=0)
    say: tuple[str, ...]
    at_most: int = Field(2, ge=1)

    def rules(self) -> SilenceRules:
        """The same as the conversation obeys it."""
        return SilenceRules(round(self.after * SAMPLE_RATE), self.say, self.at_most)


class Persona(BaseModel):
    """One character. The system prompt holds no time or date: those would break the shared prefix every minute."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = ""
    description: str = ""
    system: str
    examples: tuple[Example, ...] = ()
    greeting: str = ""
    voice: VoiceChoice = VoiceChoice()
    sampling: SamplingChoice = SamplingChoice()
    answer_tokens: int = Field(120, ge=1, le=4096)
    answer_sentences: int = Field(0, ge=0)
    """Sentences after which an answer ends; 0: when the model ends it. Small models do not know when to stop."""
    patience: float = Field(1.0, ge=0.5, le=4.0)
    interjections: InterjectionChoice = InterjectionChoice()
    listening_noises: bool = False
    """A soft "mm-hm" in the pauses of a long turn."""
    silence: SilenceChoice | None = None

    def engine_sampling(self, seed: int = 0) -> Sampling:
        """The engine's form of `sampling` and `answer_tokens`."""
        return Sampling(max_tokens=self.answer_tokens, seed=seed, **self.sampling.model_dump())


def load_persona(name: str) -> Persona:
    """The persona called `name`, the user's own before the shipped one, or the one in the YAML file `name`."""
    path = _find(name)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Persona.model_validate({"name": path.stem, **(data or {})})
    except (OSError, yaml.YAMLError, TypeError) as error:
        raise PersonaError(f"the persona {path} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PersonaError(f"the persona {path}: {where}: {first['msg']}") from error


def known_personas() -> list[str]:
    """The names that `load_persona` takes, the user's own among them, in alphabetical order."""
    return sorted({path.stem for folder in _folders() for path in folder.glob("*.yaml")})


def _folders() -> tuple[Path, Path]:
    """The user's own before the shipped ones."""
    return config_folder() / "personas", config_file("personas/default.yaml").parent


def _find(name: str) -> Path:
    if name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise PersonaError(f"there is no persona file {name}; give the name of one, or a path that exists.")
        return Path(name)
    for folder in _folders():
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    raise PersonaError(f"there is no persona '{name}'; there are {', '.join(known_personas())}.")
