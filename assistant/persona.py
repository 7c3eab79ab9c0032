"""Characters as data: one YAML file each, in `configs/personas/` or the user's configuration folder."""

from __future__ import annotations


from pydantic import BaseModel, ConfigDict, Field

from engine import Sampling


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
    repetition_penalty: float = Field(1.1, ge=1.0, le=2.0)


class VoiceChoice(BaseModel):
    """What the character sounds like."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = "joe"
    speed: float = Field(1.0, ge=0.5, le=2.0)


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
    patience: float = Field(1.0, ge=0.5, le=4.0)

    def engine_sampling(self, seed: int = 0) -> Sampling:
        """The engine's form of `sampling` and `answer_tokens`."""
        return Sampling(max_tokens=self.answer_tokens, seed=seed, **self.sampling.model_dump())
