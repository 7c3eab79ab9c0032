from __future__ import annotations

from pathlib import Path

import pytest

from assistant.ears.transcriber import Transcriber


@pytest.fixture(scope="session")
def transcriber(whisper_path: Path) -> Transcriber:
    """tiny.en with the default settings."""
    return Transcriber.load(whisper_path)
