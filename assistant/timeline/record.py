"""The record of one conversation and its JSON form."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assistant.timeline.events import Event, Turn


@dataclass(frozen=True)
class Models:
    """Names of what listened, thought and spoke."""

    asr: str
    llm: str
    voice: str
    vad: str


@dataclass
class Timeline:
    """Events and turns of one conversation, in order. Grows by `event` and `turn`; times in seconds."""

    clock: str
    persona: str
    models: Models
    sample_rate: int
    duration: float = 0.0
    source: str = ""
    complete: bool = False
    """False when the run was cut short (Ctrl-C): what is here is still valid."""
    events: list[Event] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def event(self, event: Event) -> None:
        """Append an event."""
        self.events.append(event)

    def turn(self, turn: Turn) -> None:
        """Add a turn, or replace the one with the same number by its newer state."""
        for place, known in enumerate(self.turns):
            if known.index == turn.index:
                self.turns[place] = turn
                return
        self.turns.append(turn)

    def as_json(self) -> dict[str, Any]:
        """Plain data; see `docs/timeline.md`."""
        return {
            "version": 1,
            "source": self.source,
            "sample_rate": self.sample_rate,
            "duration": round(self.duration, 4),
            "clock": self.clock,
            "compute_costs_time": self.clock == "wall",
            "complete": self.complete,
            "persona": self.persona,
            "models": asdict(self.models),
            "events": [event.as_json() for event in self.events],
            "turns": [_rounded(asdict(turn)) for turn in self.turns],
        }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def write_text(path: Path, text: str) -> None:
    """Write the whole of `text` or nothing: a reader never sees half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, timeline: Timeline) -> None:
    """Write the timeline to `path`, atomically."""
    write_text(path, json.dumps(timeline.as_json(), indent=1, ensure_ascii=False) + "\n")
