"""Which calibration belongs to which model."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.calibrations import calibration_file, calibration_of, model_name
from assistant.endpoint import Calibration, calibrated


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-135m-instruct"),
        ("Qwen3-0.6B-Q8_0.gguf", "qwen3-0.6b"),
        ("gemma-3-270m-it-f16.gguf", "gemma-3-270m-it"),
        ("model", "model"),
    ],
)
def test_names(file: str, name: str) -> None:
    assert model_name(Path("/somewhere") / file) == name


def test_the_default_model_is_calibrated() -> None:
    found = calibration_of(Path("SmolLM2-135M-Instruct.Q4_1.gguf"))
    assert calibration_file(Path("SmolLM2-135M-Instruct.Q4_1.gguf")).is_file() and found != Calibration()
    assert calibrated(-12.0, found) < 0.01 < 0.99 < calibrated(3.0, found)


def test_another_model_gets_the_default() -> None:
    assert calibration_of(Path("nobody-knows-me.gguf")) == Calibration()
