"""`say`, `transcribe` and `doctor` with the real models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.cli.test_basics import crosstalk

TEXT = "Please open the window. Then close the door and turn on the light."


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory, piper_path: Path) -> tuple[Path, dict]:
    file = tmp_path_factory.mktemp("say") / "said.wav"
    done = crosstalk("say", TEXT, "-o", str(file), "--json")
    assert done.returncode == 0, done.stderr
    return file, json.loads(done.stdout)


def test_what_is_said_is_understood(spoken: tuple[Path, dict], whisper_path: Path) -> None:
    file, said = spoken
    info = soundfile.info(file)
    assert info.duration == pytest.approx(said["seconds"], abs=0.01) and 2 < info.duration < 8
    assert [word["text"].strip(".") for word in said["words"]][:4] == ["Please", "open", "the", "window"]
    assert all(a["end"] <= b["start"] + 1e-6 for a, b in zip(said["words"], said["words"][1:], strict=False))

    done = crosstalk("transcribe", str(file), "--json")
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout)
    words = heard["text"].lower().replace(".", "").replace(",", "").split()
    assert len(set(words) & set(TEXT.lower().replace(".", "").split())) >= 10
    assert heard["pieces"][0]["start"] < 0.5 and heard["pieces"][-1]["end"] <= info.duration + 0.1


def test_silence_and_noise_are_not_words(tmp_path: Path, whisper_path: Path) -> None:
    generator = np.random.default_rng(1)
    for name, sound in (("silence", np.zeros(48_000)), ("noise", 0.05 * generator.standard_normal(48_000))):
        soundfile.write(tmp_path / f"{name}.wav", sound, 16_000)
        done = crosstalk("transcribe", str(tmp_path / f"{name}.wav"))
        assert (done.returncode, done.stdout) == (0, ""), name


@pytest.mark.parametrize("text", ["", "...", "—", "   "])
def test_nothing_to_say(text: str, tmp_path: Path, piper_path: Path) -> None:
    done = crosstalk("say", text, "-o", str(tmp_path / "x.wav"))
    assert done.returncode == 3 and "nothing" in done.stderr and not (tmp_path / "x.wav").exists()


def test_files_that_are_no_use(tmp_path: Path, piper_path: Path) -> None:
    (tmp_path / "text.wav").write_text("not a sound")
    for name in ("missing.wav", "text.wav", "."):
        done = crosstalk("transcribe", str(tmp_path / name))
        assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    done = crosstalk("say", "Hello.", "-o", str(tmp_path / "no" / "such" / "folder.wav"))
    assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr


def test_doctor(smollm2_path: Path, whisper_path: Path, piper_path: Path, tmp_path: Path) -> None:
    done = crosstalk("doctor", "--json", CROSSTALK_CONFIG=str(tmp_path))
    report = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert done.returncode == 0 and report["ok"], report
    assert {"llm model", "asr model", "voice model", "speech detector", "voice", "ears", "engine"} <= set(states)
    assert report["settings"]["models"]["llm"] == "smollm2-135m"


def test_doctor_names_what_to_do(tmp_path: Path) -> None:
    done = crosstalk("doctor", "--json", CROSSTALK_CACHE=str(tmp_path), CROSSTALK_CONFIG=str(tmp_path))
    report = json.loads(done.stdout)
    assert done.returncode == 1 and not report["ok"]
    advice = {check["name"]: check["advice"] for check in report["checks"] if check["state"] == "failed"}
    assert advice["llm model"] == "crosstalk models pull smollm2-135m"
    assert {"voice", "ears", "engine"} <= set(advice)  # not tried, and said so

    (tmp_path / "settings.yaml").write_text("vad: {onsett: 0.5}")
    done = crosstalk("doctor", CROSSTALK_CONFIG=str(tmp_path))
    assert done.returncode == 1 and "did you mean 'vad.onset'" in done.stdout
