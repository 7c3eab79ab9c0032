"""The whole daemon on a virtual sound card: a spoken conversation, control, a dead sound server, sleep, a restart."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.resample import resample
from tests.daemon.box import Box
from tests.loaded import loaded
from tests.sound_card import SoundServer, sound_server

HOOK = """
import json, sys
with open({file!r}, "a") as out: out.write(sys.stdin.read())
"""


def spoken(paths: tuple[Path, Path, Path], text: str) -> np.ndarray:
    speech = loaded(*paths).voice.synthesize(text)
    return resample(speech.pcm, speech.sample_rate, SAMPLE_RATE)


def say_into(server: SoundServer, box: Box, sound: np.ndarray) -> None:
    """Speak, and wait for the answer; once more if a machine that is busy elsewhere has lost it."""
    for _ in range(3):
        before = box.ask("status")["turns"]
        server.play_into_microphone(sound, SAMPLE_RATE).wait(30)
        end = time.monotonic() + 25
        while time.monotonic() < end:
            status = box.ask("status")
            if status["turns"] > before and status["phase"] == "listening":
                return
            time.sleep(0.1)
    raise AssertionError(box.log())


def answers(box: Box) -> list[dict[str, str]]:
    file = box.folder / "state" / "transcripts.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def metric(page: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.M)
    assert found, page
    return float(found[1])


@pytest.mark.device
def test_a_day_of_a_box(smollm2_path: Path, whisper_path: Path, piper_path: Path, tmp_path: Path) -> None:
    question = spoken((smollm2_path, whisper_path, piper_path), "What is the capital of France?")
    hooked = tmp_path / "hooked"
    script = tmp_path / "hook.py"
    script.write_text(HOOK.format(file=str(hooked)))
    config = json.dumps(
        {
            "privacy": {"transcripts": True},
            "http": {"port": 0},
            "hooks": {name: [sys.executable, str(script)] for name in ("user_turn", "answer")},
        }
    )
    with sound_server() as server:
        server.stop()  # the box is up before its sound is
        box = Box(server.folder / "box", server.environment, config)
        try:
            box.until_ready()
            box.until(lambda status: "waiting for sound" in status["state"])
            server.start()
            box.until(lambda status: status["waiting_for"] == "")
            say_into(server, box, question)
            assert "Paris" in answers(box)[-1]["assistant"], box.log()

            # Control.
            assert box.ask("ask", text="How many legs does a spider have?")["answer"]
            assert (box.socket.stat().st_mode & 0o777, box.socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)
            box.ask("mute")
            heard = box.until(lambda status: status["muted"])["turns"]
            server.play_into_microphone(question, SAMPLE_RATE).wait(30)
            box.ask("unmute")
            assert box.until(lambda status: not status["muted"])["turns"] == heard
            box.ask("ask", text="Tell me a long story about the sea.", wait=False)
            box.until(lambda status: status["phase"] == "speaking")
            box.ask("stop")
            box.until(lambda status: status["phase"] == "listening")
            second = subprocess.run(
                [sys.executable, "-m", "assistant.cli", "ctl", "--socket", str(box.socket), "status"],
                capture_output=True, text=True,
            )  # fmt: skip
            assert second.returncode == 0 and "persona default" in second.stdout, second.stderr

            # The sound server dies and comes back; what was said stays.
            context = box.ask("save")["tokens"]
            server.stop()
            box.until(lambda status: status["waiting_for"] != "")
            box.manager.until(lambda lines: box.manager.status.startswith("waiting for sound"), box)
            server.start()
            box.until(lambda status: status["waiting_for"] == "")
            box.until(lambda status: status["microphone"] != "")
            say_into(server, box, question)
            assert box.ask("save")["tokens"] > context

            # The machine sleeps: no time passes in the conversation.
            before = box.ask("status")["audio_seconds"]
            box.signal(signal.SIGSTOP)
            time.sleep(3.0)
            box.signal(signal.SIGCONT)
            box.until(lambda status: status["waiting_for"] == "" and status["audio_seconds"] > before)
            say_into(server, box, question)

            address = re.search(r"address=(http://127\.0\.0\.1:\d+)/metrics", box.log())
            assert address
            page = urllib.request.urlopen(f"{address[1]}/metrics").read().decode()
            assert metric(page, "crosstalk_turns_total") == box.ask("status")["turns"]
            assert metric(page, "crosstalk_device_losses") >= 1
            assert metric(page, "crosstalk_interruptions_total") >= 1
            assert metric(page, 'crosstalk_stage_seconds_count{stage="tts"}') >= 3
            assert metric(page, 'crosstalk_tokens_total{kind="referenced"}') > metric(
                page, 'crosstalk_tokens_total{kind="forwarded"}'
            )
            assert json.loads(urllib.request.urlopen(f"{address[1]}/healthz").read())["ok"]
            assert box.manager.lines.count("WATCHDOG=1") > 10

            # SIGTERM, a new process, and the next turn forwards only what is new.
            box.signal(signal.SIGTERM)
            assert box.wait() == 0, box.log()
            assert "STOPPING=1" in box.manager.lines and not box.socket.exists()
            told = [json.loads(line) for line in hooked.read_text().splitlines()]
            assert {"user_turn", "answer"} == {event["event"] for event in told}
            assert any("Paris" in event["text"] for event in told if event["event"] == "answer")
            box = Box(server.folder / "box", server.environment, config)
            box.until_ready()
            status = box.until(lambda status: status["waiting_for"] == "")
            kept = status["saved_tokens"]
            assert kept > context and status["engine"]["rows"] <= 1
            answer = box.ask("ask", text="And of Italy?")["answer"]
            box.until(lambda status: status["phase"] == "listening")
            new = box.ask("save")["tokens"] - kept
            rows = box.ask("status")["engine"]["rows"]
            assert answer and new <= rows <= new + 30 < kept
            print(f"restart: {kept} tokens kept, {new} new in the next turn, {rows} rows computed since the start")
            box.signal(signal.SIGTERM)
            assert box.wait() == 0, box.log()
            plain = re.sub(r".*transcripts.*", "", box.log())
            assert "Paris" not in plain and "spider" not in plain  # no words at the default level
        finally:
            box.close()
