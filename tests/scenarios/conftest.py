"""Loaded models, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.build import Parts
from tests.loaded import loaded


@pytest.fixture(scope="session")
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    """All models with default settings."""
    return loaded(smollm2_path, whisper_path, piper_path)
