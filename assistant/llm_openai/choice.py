"""Which language model answers: the engine in this process, or a server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LlmKind(Enum):
    """Where the language model runs."""

    EMBEDDED = "embedded"
    OPENAI = "openai"


@dataclass(frozen=True)
class LlmChoice:
    """With `kind: openai` what is said goes to `base_url`; everything else stays on this machine."""

    kind: LlmKind = LlmKind.EMBEDDED
    base_url: str = "http://127.0.0.1:8000/v1"
    model: str = "default"
    key_variable: str | None = None
    """Name of the environment variable that holds the key; the key itself belongs into no file of settings."""
    timeout: float = 20.0
    """Seconds that the server may be silent."""
    context: int = 8192
    """Tokens after which the oldest turns are left out."""
