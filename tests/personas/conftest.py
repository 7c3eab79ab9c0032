"""A configuration folder of the test's own, and short ways to write into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """`own(name, text)` writes a persona into the user's folder."""
    folder = tmp_path / "config" / "personas"
    folder.mkdir(parents=True)
    monkeypatch.setenv("CROSSTALK_CONFIG", str(folder.parent))

    def write(name: str, text: str) -> Path:
        path = folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
