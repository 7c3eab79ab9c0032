"""What may be wrong before and while a daemon runs: each gets one clear line, an exit code, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assistant.cli import exit_code
from assistant.cli.app import app
from assistant.daemon.client import Refused
from assistant.daemon.config import load_config
from assistant.daemon.control import ControlServer
from assistant.daemon.http import Monitor
from assistant.settings import SettingsError
from tests.daemon.box import Box

TABLE = {
    "broken YAML": ("persona: [", 2, r"daemon.yaml is not valid YAML: .*line 1"),
    "no mapping": ("- a\n- b", 2, "should be a mapping"),
    "an unknown field": ("personna: default", 2, r"'personna' is no setting; did you mean 'persona'\?"),
    "an unknown field inside": ("wake: {wrod: alexa}", 2, "did you mean 'wake.word'"),
    "a value of the wrong kind": ("http: {port: many}", 2, "'http.port' cannot be 'many'"),
    "a port that is none": ("http: {port: 70000}", 2, "between 0 and 65535"),
    "a branch given as a value": ("hooks: notify-send", 2, "'hooks' holds settings of its own"),
    "unbalanced quotes in a hook": ("hooks: {error: \"say 'oh\"}", 2, "'hooks.error' cannot be split"),
    "a missing persona": ("persona: nobody", 2, "there is no persona 'nobody'"),
    "a missing voice": ("models: {voice: piper-nobody}", 7, "piper-nobody"),
    "a missing model": ("models: {llm: /nowhere/x.gguf}", 7, "x.gguf"),
    "a state folder that is a file": ("state: {folder}/file/state", 4, "the state folder .* cannot be written"),
    "a socket path too long": ("socket: {folder}/" + "x" * 120, 4, "longer than 107 bytes"),
    "a wake word that is none": ("wake: {{word: computer}}", 2, "there is no wake word 'computer'; there are"),
    "a wake model that is none": ("wake: {{word: {folder}/file}}", 2, "is no openWakeWord model"),
}


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSTALK_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)


def start(tmp_path: Path, text: str) -> Result:
    (tmp_path / "daemon.yaml").write_text(text)
    return CliRunner().invoke(app, ["daemon", "--config", str(tmp_path / "daemon.yaml")])


@pytest.mark.parametrize(("text", "code", "sentence"), TABLE.values(), ids=TABLE)
def test_a_config_that_cannot_be(text: str, code: int, sentence: str, tmp_path: Path, smollm2_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    if "{folder}" in text:
        text = text.replace("{{", "{").replace("}}", "}").replace("{folder}", str(tmp_path))
    result = start(tmp_path, text.replace("{{", "{").replace("}}", "}"))
    error = result.exception
    assert error is not None and not isinstance(error, SystemExit)
    assert exit_code(error) == code, error
    assert re.search(sentence, " ".join(str(error).split())), error
    assert not (tmp_path / "run" / "control.sock").exists()


def test_a_config_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no config file"):
        load_config(tmp_path / "none.yaml")
    assert load_config().persona == "default"  # the one in the settings folder need not be there


def test_the_shipped_config_is_the_default(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "configs" / "daemon.yaml"
    assert load_config(shipped) == load_config()
    _, examples = shipped.read_text().split("\n\n", 1)
    uncommented = tmp_path / "daemon.yaml"
    uncommented.write_text(re.sub(r"^# ?", "", examples, flags=re.M))
    wanted = replace(
        load_config(),
        state=Path("/var/lib/crosstalk"),
        socket=Path("/run/crosstalk/control.sock"),
        models=replace(load_config().models, voice="piper-joe"),
    )
    assert load_config(uncommented) == wanted


def test_a_port_and_a_socket_in_use(tmp_path: Path, whisper_path: Path, smollm2_path: Path, piper_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = start(tmp_path, f"http: {{port: {port}}}")
        assert f"port {port} of 127.0.0.1 cannot be used" in str(result.exception)
    first = ControlServer(tmp_path / "run" / "control.sock", lambda request: {})
    first.open()
    result = start(tmp_path, "")
    assert "another daemon" in str(result.exception) and exit_code(result.exception) == 4  # type: ignore[arg-type]
    first.close()


def test_the_monitor_answers_to_this_machine_only() -> None:
    import http.client

    monitor = Monitor(0, lambda: b"a 1\n", lambda: {"ok": False, "state": "starting"})
    monitor.start()

    def get(path: str, host: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", monitor.port, timeout=10)
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    assert get("/metrics") == (200, b"a 1\n")
    assert get("/healthz")[0] == 503 and get("/other")[0] == 404
    assert get("/metrics", "evil.example:80")[0] == 421
    with socket.create_connection(("127.0.0.1", monitor.port)) as odd:
        odd.sendall(b"\x00\xffgarbage\r\n\r\n")
        odd.recv(1000)
    assert get("/metrics")[0] == 200
    monitor.close()


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A daemon on a machine without any sound."""
    folder = tmp_path_factory.mktemp("b")
    environment = dict(os.environ) | {"PULSE_SERVER": f"unix:{folder}/nowhere", "XDG_RUNTIME_DIR": str(folder)}
    running = Box(folder / "box", environment, "hooks: {answer: [/nowhere/hook]}")
    yield running
    running.close()


def test_while_it_runs(box: Box, smollm2_path: Path, whisper_path: Path, piper_path: Path) -> None:
    """No device, odd requests, a second daemon, a config broken under it, a hook that is not there."""
    box.until_ready()
    box.until(lambda status: "waiting for sound" in status["state"])
    assert box.ask("ask", text="What is the capital of France?")["answer"]  # typed words need no device
    for command, fields, sentence in (
        ("sya", {}, "did you mean 'say'"),
        ("say", {}, "needs a text"),
        ("say", {"text": " "}, "needs a text"),
        ("say", {"text": 5}, "needs a text"),
        ("say", {"text": "a" * 5000}, "4000 characters"),
        ("stop", {"now": True}, "not 'now'"),
        ("ask", {"text": "a", "wait": "no"}, "true or false"),
        ("persona", {"name": "nobody"}, "there is no persona 'nobody'"),
        ("persona", {"name": 7}, "is a text"),
    ):
        with pytest.raises(Refused, match=sentence):
            box.ask(command, **fields)
    for _ in range(8):
        box.ask("say", text="Dinner is ready.")
    with pytest.raises(Refused, match="sayings wait already"):
        for _ in range(8):
            box.ask("say", text="Dinner is ready.")
    box.ask("stop")

    command = [sys.executable, "-m", "assistant.cli", "daemon", "--set", f"socket={box.socket}"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 4 and f"process {box.process.pid}" in second.stderr, second.stderr

    (box.folder / "daemon.yaml").write_text("personna: x")
    with pytest.raises(Refused, match="did you mean 'persona'"):
        box.ask("reload")
    (box.folder / "daemon.yaml").write_text("persona: quiz\nhttp: {port: 0}")
    answer = box.ask("reload")
    assert set(answer["changed"]) == {"persona", "hooks"} and answer["needs_restart"] == ["http"]
    assert box.ask("status")["persona"] == "quiz"
    (box.folder / "daemon.yaml").write_text("persona: default")
    box.signal(signal.SIGHUP)
    box.until(lambda status: status["persona"] == "default")

    # A persona's file that is changed while it speaks: from the next turn on, unless it is broken.
    mine = box.folder / "config" / "personas" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("name: mine\nsystem: Be brief.\n")
    assert box.ask("persona", name="mine")["persona"] == "mine"
    mine.write_text("name: mine\nsistem: Be brief.\n")
    wait_for(lambda: "mine.yaml" in box.log())
    mine.write_text("name: renamed\nsystem: Be long.\n")
    box.until(lambda status: status["persona"] == "renamed")

    with socket.socket(socket.AF_UNIX) as noise:
        noise.connect(str(box.socket))
        noise.sendall(b"\x00garbage\n" * 4)
    assert box.ask("status")["hooks"]["failed"] >= 1
    assert box.ask("shutdown")["ok"]
    assert box.wait() == 0
    assert "READY=1" in box.manager.lines and not box.socket.exists()
    assert "Traceback" not in box.log() and "/nowhere/hook" in box.log(), box.log()
