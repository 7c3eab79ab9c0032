"""Typed settings: frozen dataclasses hold the defaults, a YAML file and `--set key=value` change them.

Which settings there are is for `assistant/configure.py` to say; this folder knows how they are read.
"""

from assistant.settings.nested import SettingsError, flat, merged, plain
from assistant.settings.sources import parse_override, parse_overrides, read_settings

__all__ = ["SettingsError", "flat", "merged", "parse_override", "parse_overrides", "plain", "read_settings"]
