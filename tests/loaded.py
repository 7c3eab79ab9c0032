"""The real models, loaded once for every test that wants whole conversations."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assistant.build import AssistantSettings, ModelPaths, Parts, load


@cache
def loaded(llm: Path, asr: Path, voice: Path) -> Parts:
    """All parts with default settings; they live as long as the test run."""
    return load(ModelPaths(llm, asr, voice), AssistantSettings())
