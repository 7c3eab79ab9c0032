"""The scenario file: YAML in, frozen data out. `docs/scenarios.md` describes it for authors."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from assistant.errors import CrosstalkError, ExitCode
from assistant.scenarios.moments import Anchor, Moment, parse_moment

SUFFIXES = (".yaml", ".yml")


class ScenarioError(CrosstalkError):
    """A scenario that is not there or says something impossible."""

    exit_code = ExitCode.INPUT


class Role(StrEnum):
    """What a cue is to the assistant, and so what is measured at it."""

    REQUEST = "request"  # a whole turn: must be answered, quickly
    UNFINISHED = "unfinished"  # a turn that is never finished: must be waited for, then answered or not
    CONTINUATION = "continuation"  # more of the turn before: nothing may be said in between
    BARGE_IN = "barge_in"  # must stop the assistant and be answered
    BACKCHANNEL = "backchannel"  # must neither stop the assistant nor be answered
    NOISE = "noise"  # not speech: must do nothing
    AFTERTHOUGHT = "afterthought"  # said before the answer to the last cue sounds: both are answered as one turn


class Form(BaseModel):
    """Base of the parts of a scenario: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Sound(StrEnum):
    """Sounds that are not speech (`assistant/audio/noise.py`)."""

    SILENCE = "silence"
    WHITE = "white"
    PINK = "pink"
    HUM = "hum"
    KEYBOARD = "keyboard"
    OFFICE = "office"
    CHIME = "chime"
    COUGH = "cough"
    DOOR = "door"


class Cue(Form):
    """One thing that the microphone hears: speech (`say`, perhaps in a `recording`) or a `sound`.

    In `say`, `[0.8]` is a pause of 0.8 seconds. A recording's pauses are inserted by `gaps`.
    """

    say: str = ""
    voice: str = "espeak:en-us"
    recording: str = ""
    part: tuple[float, float] | None = None
    """From and to, in seconds of the recording."""
    gaps: tuple[tuple[float, float], ...] = ()
    """(where in the part, how long): silence put into a recording."""
    sound: Sound | None = None
    seconds: float = Field(default=1.0, gt=0, le=600)
    """Length of a `sound` that goes on as long as it is let."""
    level_db: float = Field(default=-26.0, ge=-90, le=0)
    """RMS of speech while it lasts, peak of a cough or door, below full scale."""
    role: Role | None = None
    cut_in: bool = False
    """A persona that interjects should cut in on this."""
    at: Moment = Moment(Anchor.USER_ENDS, 0.5)

    @field_validator("at", mode="before")
    @classmethod
    def _moment(cls, value: Any) -> Moment:
        return value if isinstance(value, Moment) else parse_moment(value)

    @model_validator(mode="after")
    def _one_source(self) -> Cue:
        if self.sound is None and not self.say:
            raise ValueError("a cue needs 'say' or 'sound'")
        if self.sound is not None and (self.say or self.recording):
            raise ValueError("a cue is either speech ('say') or a 'sound'")
        if self.gaps and not self.recording:
            raise ValueError("'gaps' are for recordings; write pauses into 'say', e.g. 'five [0.8] six'")
        return self

    @property
    def kind(self) -> Role:
        """The role, with its default: speech asks something, sounds are noise."""
        return self.role or (Role.NOISE if self.sound is not None else Role.REQUEST)


class Background(Form):
    """A sound that lasts from `start` on, for `seconds` or to the end."""

    sound: Sound
    level_db: float = Field(default=-60.0, ge=-90, le=0)
    start: float = Field(default=0.0, ge=0)
    seconds: float | None = None


class Room(Form):
    """From the loudspeaker to the microphone. Without a room the user wears headphones."""

    echo_db: float = Field(default=-6.0, ge=-60, le=6)
    """Level of the echo against what the assistant says."""
    delay_ms: float = Field(default=60.0, ge=20, le=1000)
    """Sound card, air, sound card."""
    decay_ms: float = Field(default=120.0, ge=0, le=2000)
    """Time in which the room's reverberation falls by 60 dB; 0 = the direct sound alone."""
    drift_ppm: float = Field(default=0.0, ge=-500, le=500)
    """How much faster the speaker's clock runs than the microphone's."""


class Expectation(Form):
    """What must follow. What is left out is not looked at."""

    turns: int | None = None
    """Exchanges at the end of the run."""
    asked: tuple[str, ...] = ()
    """Words that the turns must hold, one text a turn, in order; small mishearings are forgiven."""
    answered: tuple[str, ...] = ()
    """Words of which each answer must hold one, alternatives separated by '|'."""
    answered_last: str = ""
    """The same for the last answer, however many there are."""
    silent: bool = False
    """The assistant never makes a sound."""
    uninterrupted: bool = False
    """No answer was broken off."""
    resumed: bool = False
    """Every answer was played to its end from the very sample at which it was held."""
    interrupted: int | None = None
    """Answers that were broken off."""
    stop_within: float | None = None
    """Seconds from the onset of a barge-in to silence."""
    response_within: float | None = None
    """Seconds from the end of the last speech to the answer's first audible sample."""
    heard_off_at_most: int | None = None
    """Words by which the remembered part of a broken-off answer may differ from what was in the air."""
    forwarded_at_most: int | None = None
    """Tokens of any turn that were forwarded after the user had finished."""
    speaks_first: bool = False
    """The assistant opens the conversation."""


class Scenario(Form):
    """One spoken scene."""

    name: str
    about: str = ""
    persona: str = "default"
    settings: tuple[str, ...] = ()
    """Overrides as on the command line, e.g. `vad.onset=0.6`."""
    background: tuple[Background, ...] = (Background(sound=Sound.PINK, level_db=-65.0),)
    room: Room | None = None
    user: tuple[Cue, ...]
    interjects: bool = False
    """The persona cuts in: where it does is measured, not how it takes turns."""
    repeat: int = Field(default=1, ge=1, le=1000)
    """How often the cues are gone through."""
    listen: float = Field(default=1.5, ge=0, le=600)
    """Seconds of listening after the last cue, before the end of the answers is waited for."""
    expect: Expectation = Expectation()
    long: bool = False
    """Takes minutes: left out unless it is asked for."""


def load_scenario(path: Path) -> Scenario:
    """Read one file; `ScenarioError` says which field is wrong. The name is the file's."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"the scenario {path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(data, dict):
        raise ScenarioError(f"{path} should be a mapping with the key 'user'; see docs/scenarios.md.")
    try:
        return _placed(Scenario.model_validate({"name": path.stem, **data}), path.parent)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ScenarioError(f"the scenario {path}: {where}: {first['msg']}.") from error


def _placed(scenario: Scenario, folder: Path) -> Scenario:
    """A persona given as a file lies beside the scenario."""
    if not scenario.persona.endswith(SUFFIXES):
        return scenario
    return scenario.model_copy(update={"persona": str(folder / scenario.persona)})


def load_folder(folder: Path) -> list[Scenario]:
    """All scenarios of `folder`, by name."""
    paths = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
    if not paths:
        raise ScenarioError(f"there are no scenarios in {folder}; give a folder of YAML files.")
    return [load_scenario(path) for path in paths]
