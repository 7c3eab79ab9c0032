"""Where settings come from: a YAML file, and `key=value` on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from assistant.settings.nested import SettingsError, Typed


def read_settings(file: Path) -> dict[str, Any]:
    """The mapping in `file`; empty if there is no such file."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"cannot read the settings {file}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid YAML: {' '.join(str(error).split())}.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{file} should be a mapping, such as `asr: {{threads: 2}}`.")
    return content


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Several at once, the later ones winning; so two values that must fit each other can be changed together."""
    values: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        names = key.strip().split(".")
        if not equals or not all(names):
            raise SettingsError(f"a setting is given as KEY=VALUE, such as asr.threads=2, not '{override}'.")
        branch = values
        for name in names[:-1]:
            deeper = branch.setdefault(name, {})
            if not isinstance(deeper, dict):
                raise SettingsError(f"'{key}' goes below '{name}', which was given a single value.")
            branch = deeper
        branch[names[-1]] = Typed(_parsed(text), text)
    return values


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
