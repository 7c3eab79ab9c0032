"""`devices`, `doctor` and `say` where there is a sound card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import SAMPLE_RATE
from tests.cli.test_basics import crosstalk
from tests.sound_card import SoundServer, samples_of, sound_server


@pytest.fixture(scope="module")
def server() -> Iterator[SoundServer]:
    with sound_server() as running:
        yield running


def on(server: SoundServer) -> dict[str, str]:
    return {name: server.environment[name] for name in ("XDG_RUNTIME_DIR", "PULSE_SERVER")}


@pytest.mark.device
def test_devices(server: SoundServer) -> None:
    listed = json.loads(crosstalk("devices", "--json", **on(server)).stdout)
    default = next(device for device in listed if device["default_input"])
    assert default["inputs"] > 0 and default["default_rate"] >= 8000
    table = crosstalk("devices", **on(server)).stdout
    assert default["name"] in table and "(default)" in table


@pytest.mark.device
def test_doctor_sees_them(server: SoundServer, tmp_path: Path) -> None:
    # No models in this cache: the later stages have nothing to do.
    done = crosstalk("doctor", "--json", CROSSTALK_CACHE=str(tmp_path), **on(server))
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["sound devices"]["state"] == "ok" and "microphone" in checks["sound devices"]["detail"]


@pytest.mark.device
def test_said_aloud(server: SoundServer, piper_path: Path) -> None:
    with server.recording_the_speaker() as file:
        done = crosstalk("say", "This is the speaker.", **on(server))
    assert done.returncode == 0, done.stderr
    loud = np.abs(samples_of(file)) > 0.02
    assert loud.sum() > 0.2 * SAMPLE_RATE


def test_no_sound_server_is_one_line(tmp_path: Path, piper_path: Path) -> None:
    done = crosstalk("say", "Hello.", XDG_RUNTIME_DIR=str(tmp_path), PULSE_SERVER=f"unix:{tmp_path}/none")
    if done.returncode == 0:
        pytest.skip("this machine has a sound card of its own")
    assert done.returncode == 6 and done.stderr.count("crosstalk: ") == 1 and "Traceback" not in done.stderr
