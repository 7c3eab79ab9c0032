"""`crosstalk personas` as somebody at a shell meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

PIRATE = "extends: default\ndescription: An old pirate.\nsystem: You are an old pirate.\ngreeting: Ahoy!\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "personas"
    folder.mkdir()
    (folder / "pirate.yaml").write_text(PIRATE)
    return folder


def personas(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assistant.cli", "personas", *arguments]
    environment = os.environ | {"CROSSTALK_CONFIG": str(config.parent)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def test_list_and_show(config: Path) -> None:
    (config / "broken.yaml").write_text("sytem: A.")
    listed = personas(config, "list").stdout
    assert "An old pirate." in listed and "yours" in listed and "did you mean 'system'?" in listed
    entries = {entry["name"]: entry for entry in json.loads(personas(config, "list", "--json").stdout)}
    assert entries["quiz"]["shipped"] and not entries["pirate"]["shipped"] and entries["broken"]["problem"]
    shown = yaml.safe_load(personas(config, "show", "pirate").stdout)
    assert shown["greeting"] == "Ahoy!" and len(shown["examples"]) == 4


def test_check_finds_all_mistakes_and_the_shipped_ones_have_none(config: Path) -> None:
    bad = config / "bad.yaml"
    bad.write_text("system: A.\npatiense: 2\nvoice: {effects: [metalic]}\n")
    done = personas(config, "check", "bad", "pirate")
    assert done.returncode == 2 and done.stderr == "crosstalk: 2 mistakes found.\n"
    assert done.stdout.splitlines() == [
        f"{bad}:2: patiense is no field; did you mean 'patience'?",
        f"{bad}:3: voice.effects[1] cannot be 'metalic'; did you mean 'metallic'?",
        "pirate: good",
    ]
    bad.write_text("system: A.\nvoice: {name: piper-jo}\n")
    done = personas(config, "check", "bad")
    assert f"{bad}: voice.name is no voice: 'piper-jo'; did you mean 'piper-joe'?" in done.stdout
    bad.unlink()
    done = personas(config, "check")
    assert done.returncode == 0 and done.stdout.count(": good") >= 8


def test_try_answers_and_speaks_into_a_file(config: Path, tmp_path: Path, smollm2_path: Path, piper_path: Path) -> None:
    out = tmp_path / "ahoy.wav"
    done = personas(config, "try", "pirate", "What is the capital of France?", "-o", str(out))
    assert done.returncode == 0, done.stderr
    greeting, you, answer = done.stdout.splitlines()
    assert "Ahoy!" in greeting and "What is" in you and "Paris" in answer
    import soundfile

    assert soundfile.info(out).duration > 1.5
    done = personas(config, "try", "pirat", "Hello.")
    assert done.returncode == 2
    assert done.stderr == "crosstalk: there is no persona 'pirat'; did you mean 'pirate'?\n"


def test_the_schema_is_one(config: Path) -> None:
    schema = json.loads(personas(config, "schema").stdout)
    jsonschema.validate(yaml.safe_load(PIRATE), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"system": "A.", "patience": 9}, schema)
