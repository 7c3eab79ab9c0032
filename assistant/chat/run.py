"""`crosstalk chat` from its wishes to a conversation."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from assistant.build import load
from assistant.chat.chat import Chat, Means
from assistant.chat.plain import run_plain
from assistant.personas import load_persona
from assistant.settings import default_paths, parse_settings


@dataclass(frozen=True)
class ChatRequest:
    """What the user asked for."""

    persona: str = "default"
    plain: bool = False
    typed: bool = False
    silent: bool = False
    microphone: str | None = None
    speaker: str | None = None
    overrides: tuple[str, ...] = ()


def run(request: ChatRequest) -> None:
    """Talk until the user ends it. Raises one-line errors for a bad persona, setting or device."""
    persona = load_persona(request.persona)
    settings = parse_settings(request.overrides)
    paths = default_paths(persona, settings)
    plain = request.plain or not (sys.stdout.isatty() and sys.stdin.isatty())
    print("crosstalk: loading", file=sys.stderr, flush=True)
    parts = load(paths, settings)
    try:
        chat = Chat(
            parts,
            persona,
            Means(request.typed, request.silent),
            request.microphone or settings.audio.microphone,
            request.speaker or settings.audio.speaker,
            request.persona,
        )
        if plain:
            run_plain(chat)
        else:
            from assistant.tui.app import run_app

            run_app(chat)
    finally:
        parts.close()
