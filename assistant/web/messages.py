"""What goes over the page's one socket, each way; `README.md` beside this file lists it for readers.

Sound is binary, little-endian: to here, 4 bytes (how many samples the page has played, modulo 2^32) and 320 samples of
16 bits; from here, 480 samples of 16 bits. Everything else is a JSON object with a `type`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME
from assistant.live import Status
from assistant.timeline.events import Event, Turn
from assistant.transcript import Line

FRAME_BYTES = 4 + 2 * FRAME
LONGEST_TEXT = 2_000
"""Characters of a typed turn."""


class MessageError(ValueError):
    """A client sent something that is no message; the text says what would have been one."""


class Kind(Enum):
    """What a page may ask for."""

    SAY = "say"
    STOP = "stop"
    MUTE = "mute"
    PUSH_TO_TALK = "push_to_talk"
    TALK = "talk"
    PERSONA = "persona"


@dataclass(frozen=True)
class Request:
    """One wish of the page's: `text` for SAY and PERSONA, `on` for the switches."""

    kind: Kind
    text: str = ""
    on: bool = False


@dataclass(frozen=True)
class Frame:
    """20 ms of the microphone; `played`: samples the page has played since it connected, modulo 2^32."""

    pcm: NDArray[np.float32]
    played: int


def read_frame(data: bytes) -> Frame:
    """A binary message; MessageError if it has not the length of a frame."""
    if len(data) != FRAME_BYTES:
        raise MessageError(f"a frame has {FRAME_BYTES} bytes, this one {len(data)}.")
    pcm = np.frombuffer(data, dtype="<i2", offset=4).astype(np.float32) / np.float32(32_768)
    return Frame(pcm, int.from_bytes(data[:4], "little"))


def write_frame(sound: NDArray[np.float32]) -> bytes:
    """480 samples as 16-bit little-endian."""
    return (np.clip(sound, -1.0, 1.0) * np.float32(32_767)).astype("<i2").tobytes()


def read_request(text: str) -> Request:
    """A text message; MessageError says what is wrong with it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError("a message is a JSON object.") from error
    if not isinstance(data, dict):
        raise MessageError("a message is a JSON object.")
    try:
        kind = Kind(data.get("type"))
    except ValueError as error:
        known = ", ".join(kind.value for kind in Kind)
        raise MessageError(f"a message's type is one of {known}.") from error
    if kind in (Kind.SAY, Kind.PERSONA):
        words = data.get("text")
        if not isinstance(words, str) or not words.strip() or len(words) > LONGEST_TEXT:
            raise MessageError(f"'{kind.value}' needs a text of 1 to {LONGEST_TEXT} characters.")
        return Request(kind, text=words.strip())
    if kind is Kind.STOP:
        return Request(kind)
    if not isinstance(data.get("on"), bool):
        raise MessageError(f"'{kind.value}' needs 'on': true or false.")
    return Request(kind, on=data["on"])


# --- to the page --------------------------------------------------------------------------------------------------


def write(type_: str, **content: Any) -> str:
    """A message of this type."""
    return json.dumps({"type": type_, **content}, ensure_ascii=False, separators=(",", ":"))


def line_data(line: Line) -> dict[str, Any]:
    """A line of the transcript."""
    return {field.name: plain(getattr(line, field.name)) for field in fields(line)}


def event_data(event: Event) -> dict[str, Any]:
    """An event, its type under `event`."""
    data = event.as_json()
    data["event"] = data.pop("type")
    return data


def turn_data(turn: Turn) -> dict[str, Any]:
    """What the page shows of a turn: times, latencies, tokens."""
    shown = ("index", "user_start", "user_end", "speech_start", "speech_end", "interrupted")
    data: dict[str, Any] = {name: plain(getattr(turn, name)) for name in shown}
    for part in ("latency", "tokens"):
        value = getattr(turn, part)
        data[part] = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return data


def status_data(status: Status) -> dict[str, Any]:
    """How things stand; levels as whole numbers from 0 to 255."""
    data = {field.name: plain(getattr(status, field.name)) for field in fields(status)}
    data["user"], data["assistant"] = levels(status.user), levels(status.assistant)
    return data


def levels(peaks: tuple[float, ...] | list[float]) -> list[int]:
    """Peaks in [0, 1] as whole numbers from 0 to 255."""
    return [min(255, round(peak * 255)) for peak in peaks]


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    return round(value, 4) if isinstance(value, float) else value
