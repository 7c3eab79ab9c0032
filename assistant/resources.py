"""Where the files of `configs/` are: beside the rooms in a checkout, inside the package in an installation."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
# Installed first: a folder called `configs` beside an installed package belongs to somebody else.
_PLACES = (_PACKAGE / "configs", _PACKAGE.parent / "configs")


def configs_folder() -> Path:
    """The folder that holds models.yaml, personas/ and the presets."""
    return next((place for place in _PLACES if (place / "models.yaml").is_file()), _PLACES[-1])


def config_file(*parts: str) -> Path:
    """The path of one shipped file, e.g. `config_file("personas", "default.yaml")`; it need not exist."""
    return configs_folder().joinpath(*parts)
