"""The things that happen in a conversation, as data.

One flat record per event; fields that a type does not use are None and are left out of the JSON. The same records
feed the terminal, the timeline file, the page and the daemon's hooks. `docs/timeline.md` describes them for readers
of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum


class EventType(Enum):
    """Every kind of event."""

    LISTENING = "listening"
    USER_SPEECH_START = "user_speech_start"
    USER_SPEECH_END = "user_speech_end"
    PARTIAL = "partial"
    REJECTED = "rejected"
    DRAFT = "draft"
    DRAFT_DROPPED = "draft_dropped"
    ENDPOINT = "endpoint"
    USER_TURN = "user_turn"
    FIRST_TOKEN = "first_token"
    ASSISTANT_TEXT = "assistant_text"
    ASSISTANT_SPEECH_START = "assistant_speech_start"
    ASSISTANT_SPEECH_END = "assistant_speech_end"
    DUCK = "duck"
    HOLD = "hold"
    RESUME = "resume"
    BARGE_IN = "barge_in"
    BACKCHANNEL = "backchannel"
    INTERJECTION = "interjection"
    LISTENING_NOISE = "listening_noise"
    HEARD = "heard"
    COMPACTED = "compacted"
    PERSONA = "persona"
    DEVICE = "device"
    WAKE = "wake"
    ERROR = "error"


@dataclass(frozen=True)
class Event:
    """One event. `t`: seconds on the audio clock; other fields as the type needs them."""

    t: float
    type: EventType
    turn: int | None = None
    """Number of the turn (the user's request and its answer), from 0."""
    at: float | None = None
    """When it really began, if it was noticed later (seconds)."""
    text: str | None = None
    stable: str | None = None
    """PARTIAL: the part of `text` that is not expected to change."""
    silence: float | None = None
    """ENDPOINT: seconds of silence waited for."""
    finished: float | None = None
    """ENDPOINT: the engine's probability that a whole turn was said."""
    reason: str | None = None

    def as_json(self) -> dict[str, object]:
        """Plain data without the unused fields."""
        record: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, float):
                value = round(value, 4)
            record[field.name] = value.value if isinstance(value, Enum) else value
        return record


@dataclass(frozen=True)
class Latency:
    """Seconds from the end of the user's speech to each stage of the answer; None where it did not happen.

    `voice_to_voice` is what the user feels: to the first sample of the answer's sound.
    """

    endpoint: float | None = None
    asr: float | None = None
    first_token: float | None = None
    first_clause: float | None = None
    tts: float | None = None
    voice_to_voice: float | None = None


@dataclass(frozen=True)
class Tokens:
    """Where a turn's prompt came from. `forwarded + referenced + copied` is what the turn added to the context.

    `after_endpoint`: forwarded when the user had finished; `discarded`: forwarded for drafts that were dropped;
    `rewritten`: forwarded again after the turn, to leave out what held for it only.
    """

    forwarded: int = 0
    referenced: int = 0
    copied: int = 0
    context: int = 0
    generated: int = 0
    after_endpoint: int = 0
    discarded: int = 0
    rewritten: int = 0


@dataclass(frozen=True)
class Word:
    """A word of the answer and when its sound was in the air (seconds); `heard` is False for what was cut off."""

    text: str
    start: float
    end: float
    heard: bool = True


@dataclass(frozen=True)
class Turn:
    """One exchange: what the user said and what came of it."""

    index: int
    user_text: str
    user_start: float
    user_end: float
    assistant_text: str = ""
    heard_text: str = ""
    speech_start: float | None = None
    speech_end: float | None = None
    interrupted: bool = False
    latency: Latency = Latency()
    tokens: Tokens = Tokens()
    words: tuple[Word, ...] = ()
