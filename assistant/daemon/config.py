"""What may be set about the daemon: everything that may be set at all, and what only a daemon has."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from assistant.folders import config_folder
from assistant.settings import Settings, SettingsError, merged, parse_overrides, read_settings
from assistant.settings.tree import settings_file


class LogLevel(Enum):
    """How much is logged. Words that were said are logged at `debug` only."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class LogForm(Enum):
    """How a line of the log looks."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class LogChoice:
    """The log, on standard error."""

    level: LogLevel = LogLevel.INFO
    form: LogForm = LogForm.TEXT


@dataclass(frozen=True)
class WakeChoice:
    """Listening only after a word. Needs the extra `wake`."""

    word: str | None = None
    """A model that the wheel ships (alexa, hey_jarvis, hey_mycroft, hey_rhasspy, okay_nabu), or an openWakeWord
    .tflite file; None: always listening."""
    threshold: float = 0.5
    follow_up: float = 8.0
    """Seconds after an answer in which no word is needed."""
    stop_words: tuple[str, ...] = ("stop", "be quiet", "shut up", "that's enough", "never mind")
    """Said over an answer and nothing else: it ends, and so does the listening. Only where a wake word is used."""

    def __post_init__(self) -> None:
        _within("wake.threshold", self.threshold, 0.05, 0.99)
        _within("wake.follow_up", self.follow_up, 0.0, 600.0)


@dataclass(frozen=True)
class KeepChoice:
    """The conversation on disk."""

    conversation: bool = True
    after: float = 60.0
    """Seconds of quiet after which a changed conversation is written; 0: only at the end and when asked."""

    def __post_init__(self) -> None:
        _within("keep.after", self.after, 0.0, 86_400.0)


@dataclass(frozen=True)
class PrivacyChoice:
    """What is written down beyond the conversation's own memory. All of it stays on this machine."""

    transcripts: bool = False
    """Append each turn's words to transcripts.jsonl in the state folder."""
    recordings: bool = False
    """Record both sides, a file an hour, in the state folder."""
    recordings_kept: int = 24
    """Files after which the oldest is deleted."""

    def __post_init__(self) -> None:
        _within("privacy.recordings_kept", self.recordings_kept, 1, 10_000)


Command = str | tuple[str, ...] | None
"""A program and its arguments; no shell."""


@dataclass(frozen=True)
class HookChoice:
    """Commands that are run when something happens, with the event as JSON on standard input."""

    wake: Command = None
    user_turn: Command = None
    answer: Command = None
    error: Command = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        _within("hooks.timeout", self.timeout, 0.1, 600.0)
        for name in ("wake", "user_turn", "answer", "error"):
            self.argv(name)

    def argv(self, name: str) -> tuple[str, ...]:
        """The command for an event as a list; empty if there is none. SettingsError for unbalanced quotes."""
        command: Command = getattr(self, name)
        if isinstance(command, str):
            try:
                return tuple(shlex.split(command))
            except ValueError as error:
                raise SettingsError(f"'hooks.{name}' cannot be split into words: {error}.") from error
        return command or ()


@dataclass(frozen=True)
class HttpChoice:
    """/metrics and /healthz on 127.0.0.1."""

    port: int | None = None
    """None: off. 0: any free one, which the log names."""

    def __post_init__(self) -> None:
        _within("http.port", self.port or 0, 0, 65_535)


@dataclass(frozen=True)
class DaemonConfig(Settings):
    """The whole tree of a daemon's config file."""

    persona: str = "default"
    state: Path | None = None
    """Folder of the kept conversation; None: $STATE_DIRECTORY, else the user's state folder."""
    socket: Path | None = None
    """The control socket; None: in $RUNTIME_DIRECTORY, else in $XDG_RUNTIME_DIR, else in the state folder."""
    wake: WakeChoice = field(default_factory=WakeChoice)
    keep: KeepChoice = field(default_factory=KeepChoice)
    privacy: PrivacyChoice = field(default_factory=PrivacyChoice)
    hooks: HookChoice = field(default_factory=HookChoice)
    http: HttpChoice = field(default_factory=HttpChoice)
    log: LogChoice = field(default_factory=LogChoice)


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingsError(f"'{name}' must lie between {low:g} and {high:g}, not {value:g}.")


def config_path(given: Path | None) -> Path:
    """The file that is read: the one given, else daemon.yaml in the user's folder, which need not exist."""
    return given if given is not None else config_folder() / "daemon.yaml"


def load_config(given: Path | None = None, overrides: Iterable[str] = ()) -> DaemonConfig:
    """Defaults, the user's settings.yaml, the config file, `key=value` overrides. SettingsError names the field."""
    path = config_path(given)
    if given is not None and not given.is_file():
        raise SettingsError(f"there is no config file {given}.")
    tree = merged(DaemonConfig(), read_settings(settings_file()), str(settings_file()))
    tree = merged(tree, read_settings(path), str(path))
    return merged(tree, parse_overrides(overrides), "--set")
