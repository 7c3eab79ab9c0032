"""Typed settings, read once: frozen dataclasses hold the defaults, a YAML file and `--set key=value` change them."""

from assistant.settings.nested import SettingsError, flat, merged, plain
from assistant.settings.sources import parse_overrides, read_settings
from assistant.settings.tree import AudioChoice, ModelChoice, Settings, default_paths, parse_settings, voice_of

__all__ = [
    "AudioChoice",
    "ModelChoice",
    "Settings",
    "SettingsError",
    "default_paths",
    "flat",
    "merged",
    "parse_overrides",
    "parse_settings",
    "plain",
    "read_settings",
    "voice_of",
]
