"""`crosstalk replay` as a process: bad input in one line, Ctrl-C leaves whole files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import SAMPLE_RATE
from assistant.cli import main
from tests.replay.conftest import DEMO

COMMAND = [sys.executable, "-m", "assistant.cli", "replay"]


Say = Callable[..., tuple[int, str]]


@pytest.fixture
def crosstalk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run `crosstalk replay …` in this process; gives the exit code and what stood on standard error."""

    def say(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["crosstalk", "replay", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return say


def one_line(done: tuple[int, str], code: int, *words: str) -> None:
    assert done[0] == code, done[1]
    lines = done[1].strip().splitlines()
    assert len(lines) == 1 and "Traceback" not in done[1]
    for word in words:
        assert word in lines[0]


def test_bad_recordings(crosstalk: Say, tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("this is not sound")
    (tmp_path / "empty.wav").write_bytes(b"")
    soundfile.write(tmp_path / "none.wav", np.zeros(0, np.float32), SAMPLE_RATE)
    one_line(crosstalk(tmp_path / "text.wav"), 3, "text.wav", "not a sound file")
    one_line(crosstalk(tmp_path / "empty.wav"), 3, "empty.wav", "empty")
    one_line(crosstalk(tmp_path / "none.wav"), 3, "none.wav", "without a single sample")
    one_line(crosstalk(tmp_path / "missing.wav"), 3, "missing.wav", "no file")
    one_line(crosstalk(tmp_path), 3, "folder")


@pytest.mark.parametrize("option", ["--out", "--timeline", "--html"])
def test_unwritable_outputs_are_noticed_before_the_work(option: str, crosstalk: Say, tmp_path: Path) -> None:
    one_line(crosstalk(DEMO, option, tmp_path / "nowhere" / "x"), 4, "nowhere")
    one_line(crosstalk(DEMO, option, tmp_path), 4, "folder")
    one_line(crosstalk(DEMO, option, "/proc/x"), 4, "/proc/x")


def test_impossible_wishes(crosstalk: Say) -> None:
    one_line(crosstalk(DEMO, "--persona", "nobody"), 2, "nobody", "default")
    one_line(crosstalk(DEMO, "--set", "vad.onsett=0.5"), 2, "onset")
    one_line(crosstalk(DEMO, "--set", "vad.onset=loud"), 2, "vad.onset", "loud")


def test_ctrl_c_leaves_whole_files(tmp_path: Path, smollm2_path: Path, whisper_path: Path, piper_path: Path) -> None:
    out, timeline, page = tmp_path / "o.wav", tmp_path / "t.json", tmp_path / "t.html"
    process = subprocess.Popen(
        [*COMMAND, str(DEMO), "--out", str(out), "--timeline", str(timeline), "--html", str(page)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if " crosstalk  " in line:  # in the middle of the first answer
            process.send_signal(signal.SIGINT)
            break
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    data = json.loads(timeline.read_text())
    assert data["complete"] is False and data["turns"]
    assert abs(soundfile.info(out).duration - data["duration"]) < 1e-6
    assert data["turns"][0]["interrupted"] and "</html>" in page.read_text()
