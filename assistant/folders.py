"""The user's folders: cache (models, compiled things) and configuration."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "CROSSTALK_CACHE"
CONFIG_VARIABLE = "CROSSTALK_CONFIG"


def cache_folder() -> Path:
    """Where models are kept: $CROSSTALK_CACHE, or the system's cache folder for this user."""
    return _folder(CACHE_VARIABLE, "user_cache_path")


def config_folder() -> Path:
    """Where the user's own settings, personas and models are looked for: $CROSSTALK_CONFIG, or the system's place."""
    return _folder(CONFIG_VARIABLE, "user_config_path")


def _folder(variable: str, standard: str) -> Path:
    chosen = os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    folder: Path = getattr(platformdirs, standard)("crosstalk", appauthor=False)
    return folder
