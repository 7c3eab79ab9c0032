"""The daemon's parts one by one: hooks, notifications, what is logged and kept, when it saves, the unit."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import FRAME, PLAYBACK_FRAME
from assistant.audio.sound_card import SoundStats
from assistant.daemon import hooks as hooks_module
from assistant.daemon.config import HookChoice, KeepChoice, LogChoice, LogForm, LogLevel, PrivacyChoice
from assistant.daemon.hooks import Hooks
from assistant.daemon.journal import Journal
from assistant.daemon.log import Log
from assistant.daemon.memory import Memory
from assistant.daemon.metrics import Metrics
from assistant.daemon.notify import Notifier
from assistant.daemon.unit import InstallError, UsageError, install_unit, unit_text
from assistant.floor import Phase
from assistant.live import Status
from assistant.timeline.events import Event, EventType, Latency, Tokens, Turn
from engine import SavedSessionError
from engine.engine import EngineStats, PoolStats

TURN = Turn(
    0,
    "a secret question",
    1.0,
    2.0,
    assistant_text="a secret answer, long",
    heard_text="a secret answer",
    interrupted=True,
    latency=Latency(endpoint=0.2, voice_to_voice=0.31),
    tokens=Tokens(forwarded=10, referenced=150, context=180, generated=12),
)


@pytest.fixture
def log() -> Log:
    return Log(LogChoice())


# --- hooks --------------------------------------------------------------------------------------------------------


def test_hooks_get_the_event_and_may_not_block(tmp_path: Path, log: Log) -> None:
    file = tmp_path / "out"
    write = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read())"
    quick = (sys.executable, "-c", write)
    hooks = Hooks(HookChoice(wake=quick, user_turn=quick, answer=quick, error=quick), log)
    for kind in (EventType.WAKE, EventType.USER_TURN, EventType.DUCK, EventType.ERROR):
        hooks.event(Event(1.5, kind, text="hello", reason="broken" if kind is EventType.ERROR else None))
    hooks.turn(TURN)
    hooks.turn(TURN)  # its tokens are settled: told once
    hooks._calls.put(None)
    hooks._thread.join(20)
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert [event["event"] for event in told] == ["wake", "user_turn", "error", "answer"]
    assert told[2]["reason"] == "broken"
    about = {"turn": 0, "user": TURN.user_text, "text": TURN.heard_text, "interrupted": True}
    assert told[3] == {"event": "answer", **about}


def test_a_hook_that_hangs_is_ended_with_its_children_and_others_are_dropped(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks_module, "WAITING", 2)
    pid = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid)); time.sleep(600)\n"
    )
    hooks = Hooks(HookChoice(wake=(sys.executable, "-c", code), timeout=2.0), log)
    for _ in range(10):
        hooks.event(Event(1.0, EventType.WAKE))
    assert hooks.dropped >= 6  # one runs, some wait; nothing here waited for them
    while not hooks.failed:
        threading.Event().wait(0.05)
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


# --- systemd ------------------------------------------------------------------------------------------------------


def test_notifications(tmp_path: Path) -> None:
    for address in (str(tmp_path / "n"), "@crosstalk-test-notify"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(address.replace("@", "\0") if address[0] == "@" else address)
            manager.settimeout(5)
            notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000"})
            assert notifier.watchdog == 30.0
            notifier.ready("listening")
            assert manager.recv(100) == b"READY=1\nSTATUS=listening"
            notifier.alive()
            assert manager.recv(100) == b"WATCHDOG=1"
            notifier.reloading()
            assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
    Notifier({}).ready("nobody listens")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).alive()
    assert Notifier({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "1"}).watchdog == 0.0


@pytest.mark.parametrize("system", [True, False])
def test_systemd_takes_the_unit(system: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my venv" / "crosstalk"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = unit_text(system=system, command=str(program), config=Path("/etc/a b.yaml"), cache=Path("/c d"))
    for line in ("Type=notify", "NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryMax=2G", "WatchdogSec=60"):
        assert line in text.splitlines()
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    unit = tmp_path / "crosstalk.service"
    unit.write_text(text)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    command = ["systemd-analyze", *([] if system else ["--user"]), "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "crosstalk.service" not in done.stderr, done.stderr  # other units of this machine are not ours to judge


def test_installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CROSSTALK_CONFIG", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="--user or --system"):
        install_unit(user=False, system=False, show=False, config=None)
    install_unit(user=True, system=False, show=True, config=None)
    assert capsys.readouterr().out.startswith("# Made by") and not list(tmp_path.iterdir())
    install_unit(user=True, system=False, show=False, config=None)
    assert (tmp_path / "systemd/user/crosstalk.service").is_file()
    assert "systemctl --user enable --now crosstalk.service" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(InstallError, match="cannot be written"):
        install_unit(user=True, system=False, show=False, config=None)


# --- what is written down -----------------------------------------------------------------------------------------


LOOKING_FOR_DEVICES = """
import os
from assistant.daemon.config import LogChoice
from assistant.daemon.log import Log

log = Log(LogChoice())
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # as sounddevice does meanwhile, for the whole process
log.info("turn", seconds=1.5)
"""


def test_no_line_is_lost_while_devices_are_looked_for() -> None:
    done = subprocess.run([sys.executable, "-c", LOOKING_FOR_DEVICES], capture_output=True, text=True, check=True)
    assert "turn seconds=1.5" in done.stderr


def test_no_words_at_the_default_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for level, spoken in ((LogLevel.INFO, False), (LogLevel.DEBUG, True)):
        log = Log(LogChoice(level, LogForm.JSON))
        journal = Journal(tmp_path, PrivacyChoice(), log)
        for kind in EventType:
            journal.event(Event(1.0, kind, text="secret" if kind not in (EventType.DEVICE, EventType.PERSONA) else "x"))
        journal.turn(TURN)
        journal.heard(np.zeros(FRAME, np.float32))
        journal.sound(np.zeros(PLAYBACK_FRAME, np.float32))
        written = capsys.readouterr().err
        assert ("secret" in written) is spoken
        turn = next(line for line in map(json.loads, written.splitlines()) if line["event"] == "turn")
        assert turn["voice_to_voice"] == 0.31 and turn["referenced"] == 150
    assert not list(tmp_path.iterdir())


def test_transcripts_and_recordings_when_asked_for(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assistant.daemon.journal.HOUR", 50)
    journal = Journal(tmp_path, PrivacyChoice(transcripts=True, recordings=True, recordings_kept=2), log)
    journal.turn(TURN)
    journal.turn(TURN)
    for _ in range(220):
        journal.heard(np.full(FRAME, 0.1, np.float32))
        journal.sound(np.full(PLAYBACK_FRAME, 0.2, np.float32))
    journal.close()
    line, *others = (tmp_path / "transcripts.jsonl").read_text().splitlines()
    assert not others and json.loads(line)["assistant"] == TURN.heard_text
    assert (tmp_path / "transcripts.jsonl").stat().st_mode & 0o077 == 0
    files = sorted((tmp_path / "recordings").glob("*.wav"))
    assert len(files) == 2
    sound, rate = soundfile.read(files[0])
    assert rate == 24_000 and sound.shape == (50 * PLAYBACK_FRAME, 2)
    (tmp_path / "file").write_text("")
    full = Journal(tmp_path / "file", PrivacyChoice(transcripts=True, recordings=True), log)
    full.turn(TURN)
    full.heard(np.zeros(FRAME, np.float32))
    full.sound(np.zeros(PLAYBACK_FRAME, np.float32))  # no exception: the conversation goes on


# --- the conversation's memory ------------------------------------------------------------------------------------


class FakeSession:
    def __init__(self, result: int | Exception) -> None:
        self.result = result

    def call(self, job) -> None:
        class Saving:
            def save(_, folder, saved) -> None:
                saved(self.result)

        job(Saving())


def test_it_saves_when_something_changed_and_all_has_been_quiet(tmp_path: Path, log: Log) -> None:
    now = [0.0]
    memory = Memory(tmp_path, KeepChoice(after=60.0), log, lambda: now[0])
    now[0] = 100.0
    assert not memory.due  # nothing was said
    memory.turn(TURN)
    memory.status(Status(1.0, Phase.SPEAKING))
    assert not memory.due
    memory.status(Status(1.0, Phase.LISTENING))
    now[0] = 159.0
    assert not memory.due
    now[0] = 161.0
    assert memory.due
    with pytest.raises(SavedSessionError):
        memory.save(FakeSession(SavedSessionError("No space left on device")))
    assert not memory.due  # not at once again
    now[0] = 230.0
    assert memory.due and memory.save(FakeSession(180)) == 180
    assert not memory.due and memory.saved_tokens == 180


# --- metrics ------------------------------------------------------------------------------------------------------


def test_metrics_count_each_turn_once_and_hold_no_words() -> None:
    engine = EngineStats(1, 321, 2, 0, (PoolStats(None, 100, 7, 20, 9, 0),))
    metrics = Metrics(lambda: engine, lambda: SoundStats(1, 2, 3, 0, 4))
    metrics.turn(Turn(0, TURN.user_text, 1.0, 2.0, heard_text=TURN.heard_text, interrupted=True, latency=TURN.latency))
    metrics.turn(TURN)
    metrics.event(Event(1.0, EventType.RESUME))
    metrics.status(Status(1.0, Phase.LISTENING, muted=True))
    page = metrics.page().decode()
    for line in (
        "crosstalk_turns_total 1.0",
        "crosstalk_interruptions_total 1.0",
        "crosstalk_false_alarms_total 1.0",
        'crosstalk_tokens_total{kind="forwarded"} 10.0',
        'crosstalk_voice_to_voice_seconds_bucket{le="0.3"} 0.0',
        'crosstalk_voice_to_voice_seconds_bucket{le="0.4"} 1.0',
        'crosstalk_stage_seconds_count{stage="endpoint"} 1.0',
        'crosstalk_pool_pages{group="0",state="held"} 7.0',
        'crosstalk_xruns{side="output"} 5.0',
        "crosstalk_device_losses 4.0",
        "crosstalk_muted 1.0",
        "crosstalk_engine_rows 321.0",
    ):
        assert line in page.splitlines(), line
    assert "secret" not in page and "process_open_fds" in page
