"""One character as data: every field that a persona file may have, and the rules that the conversation obeys."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from assistant.audio.constants import SAMPLE_RATE
from assistant.interjection import Eagerness, InterjectionRules, Reason, SilenceRules
from engine import Sampling


class Part(BaseModel):
    """A group of fields. Unknown ones are refused: a misspelt field would be a wish that nobody hears."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, use_attribute_docstrings=True)


Text = Annotated[str, Field(min_length=1)]


class Example(Part):
    """One exchange that shows the model how the character answers."""

    user: Text
    """What somebody says."""
    assistant: Text
    """What the character answers."""


class SamplingChoice(Part):
    """How words are chosen; temperature 0 always takes the likeliest."""

    temperature: float = Field(0.0, ge=0.0, le=2.0)
    """0: always the likeliest word; towards 1: livelier and less sure."""
    top_k: int = Field(0, ge=0)
    """Choose among so many words only; 0: among all."""
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    """Choose among the likeliest words that together have this probability."""
    min_p: float = Field(0.0, ge=0.0, lt=1.0)
    """Leave out words less likely than this share of the likeliest one."""
    repetition_penalty: float = Field(1.0, ge=1.0, le=2.0)
    """Above 1: words that were said are said less."""


def _effect(name: Any) -> Any:
    from voices.effects import EFFECTS

    if isinstance(name, str) and name not in EFFECTS:
        near = get_close_matches(name, EFFECTS, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(EFFECTS)}."
        raise ValueError(f"cannot be '{name}'; {hint}")
    return name


class VoiceChoice(Part):
    """What the character sounds like."""

    name: Text = "piper-joe"
    """A voice of `crosstalk models list`, or a Piper .onnx file."""
    speed: float = Field(1.0, ge=0.5, le=2.0)
    """1.2 is a fifth faster."""
    variation: float = Field(1.0, ge=0.0, le=2.0)
    """How lively: 0 is monotonous."""
    effects: tuple[Annotated[str, BeforeValidator(_effect)], ...] = ()
    """What the voice is put through, in this order; needs the `effects` extra."""


class ReasonChoice(Part):
    """A reason to cut in on the user, and what is said then."""

    name: Text
    """For the timeline and the log."""
    say: Text
    """The words it cuts in with."""
    hears: tuple[Text, ...] = ()
    """It applies when one of these is said (words in a row)."""
    unless: tuple[Text, ...] = ()
    """It does not when one of these is said."""
    after: float | None = Field(None, gt=0)
    """It applies when the user has spoken for so many seconds."""
    judged: bool = False
    """The model decides whether it applies, from what the user says."""
    only_say: bool = False
    """Nothing follows `say`; otherwise the model goes on from it."""

    @model_validator(mode="after")
    def _has_a_trigger(self) -> Self:
        if not self.hears and self.after is None and not self.judged:
            raise ValueError("never applies; give it hears, after or judged.")
        return self


class InterjectionChoice(Part):
    """Whether and why the character cuts in while the user speaks."""

    eagerness: Eagerness = Eagerness.OFF
    """How readily; off means never."""
    reasons: tuple[ReasonChoice, ...] = ()
    """What for; the first that applies is taken."""
    cooldown: float = Field(20.0, ge=0)
    """Seconds between two."""
    per_ten_minutes: int = Field(6, ge=1)
    """The most in ten minutes."""
    insist: bool = False
    """Go on although the user goes on too, instead of giving way after a second."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [reason.name for reason in self.reasons]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"has two reasons called '{twice}'; each needs a name of its own.")
        return self

    def rules(self, noises: tuple[str, ...] = ()) -> InterjectionRules:
        """The same as the conversation obeys it; `noises`: what is murmured while listening, if anything."""
        rules = InterjectionRules(
            eagerness=self.eagerness,
            reasons=tuple(Reason(**reason.model_dump()) for reason in self.reasons),
            cooldown=round(self.cooldown * SAMPLE_RATE),
            per_ten_minutes=self.per_ten_minutes,
            insist=self.insist,
            listening_noises=bool(noises),
        )
        return InterjectionRules(**{**vars(rules), "noises": noises}) if noises else rules


class SilenceChoice(Part):
    """What the character says into a long silence."""

    say: Annotated[tuple[Text, ...], Field(min_length=1)]
    """One after the other."""
    after: float = Field(30.0, gt=0)
    """Seconds of silence."""
    at_most: int = Field(2, ge=1)
    """Times in a row without a word from the user."""

    def rules(self) -> SilenceRules:
        """The same as the conversation obeys it."""
        return SilenceRules(round(self.after * SAMPLE_RATE), self.say, self.at_most)


class Interruptibility(Enum):
    """How much it takes to stop the character by speaking."""

    EASY = "easy"
    NORMAL = "normal"
    HARD = "hard"


def _command(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise ValueError(f"is no command: {str(error).lower()}.") from error


class ContextChoice(Part):
    """What is true at the moment. The model is told with the user's words and forgets it after its answer, so that the
    prompt's beginning never changes."""

    time: bool = False
    """The date and the time of day."""
    command: Annotated[
        tuple[str, ...],
        BeforeValidator(_command),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    ] = ()
    """A program and its arguments; its first line of output is told. It runs without a shell."""
    label: str = ""
    """What the command's output is, such as "The temperature here"."""


class Persona(Part):
    """One character. The system prompt holds no time or date: those would break the shared prefix every minute."""

    name: Text = "nameless"
    """Default: the file's name."""
    description: str = ""
    """One line for lists."""
    system: Text
    """What the character is told about itself: short, for a small model."""
    examples: tuple[Example, ...] = ()
    """Two to four exchanges; a small model learns more from them than from the system prompt."""
    greeting: str = ""
    """Said first."""
    voice: VoiceChoice = VoiceChoice()
    sampling: SamplingChoice = SamplingChoice()
    answer_tokens: int = Field(120, ge=1, le=4096)
    """The longest answer."""
    answer_sentences: int = Field(0, ge=0)
    """Sentences after which an answer ends; 0: when the model ends it. Small models do not know when to stop."""
    thinking: bool = False
    """Let a model that can think do so before it answers; thoughts are not spoken."""
    language: Text = "en"
    """A language of `configs/languages`: what counts as a listening noise and as a call to stop."""
    patience: float = Field(1.0, ge=0.5, le=4.0)
    """How long a silence must be, compared with the usual, to end the user's turn."""
    interruptibility: Interruptibility = Interruptibility.NORMAL
    """How much it takes to stop the character by speaking; "stop" always does."""
    interjections: InterjectionChoice = InterjectionChoice()
    backchannels: bool = False
    """A soft "mm-hm" in the pauses of a long turn."""
    silence: SilenceChoice | None = None
    context: ContextChoice = ContextChoice()
    wake_word: str | None = None
    """What wakes it in `crosstalk daemon`."""
    push_to_talk: bool = False
    """Begin with push to talk: the key, not the silence, ends the user's turn."""

    def engine_sampling(self, seed: int = 0) -> Sampling:
        """The engine's form of `sampling` and `answer_tokens`."""
        return Sampling(max_tokens=self.answer_tokens, seed=seed, **self.sampling.model_dump())

    @property
    def phrases(self) -> tuple[str, ...]:
        """What it says word for word, the likeliest to be waited for first."""
        silence = () if self.silence is None else self.silence.say
        return (*(reason.say for reason in self.interjections.reasons), *silence)
