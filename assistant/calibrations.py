"""Per model: from its log-odds of "the turn is over" to a probability, as files in `configs/endpoint/`.

Made by `scripts/calibrate_endpoint.py`. A file is for all quantisations of a model:
`smollm2-135m-instruct.yaml` for `SmolLM2-135M-Instruct.Q4_1.gguf`.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from assistant.endpoint import Calibration
from assistant.errors import CrosstalkError, ExitCode
from assistant.resources import config_file

_QUANTISATION = re.compile(r"[.-](?:i?q\d\w*|b?f16|f32)$")


class CalibrationError(CrosstalkError):
    """A calibration file that cannot be read."""

    exit_code = ExitCode.USAGE


def model_name(model: Path) -> str:
    """The name of a model file by which its calibration is called: lower case, without format and quantisation."""
    name = model.name.lower().removesuffix(".gguf")
    return _QUANTISATION.sub("", name)


def calibration_file(model: Path) -> Path:
    """Where the calibration of `model` is kept; it need not exist."""
    return config_file("endpoint", f"{model_name(model)}.yaml")


def calibration_of(model: Path) -> Calibration:
    """The calibration of `model`; the default one, which suits no model exactly, where none was made."""
    path = calibration_file(model)
    if not path.is_file():
        return Calibration()
    try:
        return Calibration(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, yaml.YAMLError) as error:
        raise CalibrationError(f"{path} is no calibration; make it with scripts/calibrate_endpoint.py.") from error
