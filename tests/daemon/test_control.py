"""The control socket: who may come in, and what garbage, floods and silence do to it (nothing)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.daemon import control
from assistant.daemon.client import Control, NoDaemon, Refused
from assistant.daemon.control import AlreadyRunning, ControlServer, SocketRefused
from assistant.errors import CrosstalkError

NOBODY = 65_534


def handle(request: dict[str, Any]) -> dict[str, Any]:
    match request["command"]:
        case "echo":
            return {"text": request.get("text")}
        case "refuse":
            raise CrosstalkError("not today.")
        case _:
            raise ValueError("a bug")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def server(folder: Path) -> Iterator[ControlServer]:
    opened = ControlServer(folder / "run" / "c.sock", handle)
    opened.open()
    opened.start()
    yield opened
    opened.close()


def raw(server: ControlServer, data: bytes) -> list[dict[str, Any]]:
    """Send, half-close, and read all answers."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(server.path))
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # left already: the answers say why
        received = b""
        try:
            while chunk := client.recv(65_536):
                received += chunk
        except ConnectionResetError:
            pass
    return [json.loads(line) for line in received.splitlines()]


def test_a_line_asks_and_a_line_answers(server: ControlServer) -> None:
    with Control(server.path) as client:
        assert client.ask("echo", text="größer") == {"ok": True, "command": "echo", "text": "größer"}
        with pytest.raises(Refused, match="not today"):
            client.ask("refuse")
        with pytest.raises(Refused, match="ValueError: a bug"):
            client.ask("break")
        assert client.ask("echo", id=7)["id"] == 7
    assert server.path.stat().st_mode & 0o777 == 0o600 and server.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "line",
    [b"hello", b"\xff\xfe\x00", b"[]", b"{}", b'{"command": 5}', b"null", b"[" * 20_000, b'{"command":', b'"status"'],
)
def test_garbage_is_answered_and_survived(server: ControlServer, line: bytes) -> None:
    answers = raw(server, line + b"\n" + b'{"command": "echo", "text": "still here"}\n')
    assert not answers[0]["ok"] and "request" in answers[0]["error"]
    assert answers[1]["text"] == "still here"


def test_nothing_but_garbage_is_left(server: ControlServer) -> None:
    answers = raw(server, b"x\n" * 50)
    assert len(answers) == control.MOST_BAD_LINES + 1 and "too many" in answers[-1]["error"]
    assert raw(server, b'{"command": "echo"}\n')[0]["ok"]


def test_a_line_without_an_end_is_bounded(server: ControlServer) -> None:
    answers = raw(server, b"a" * (control.LONGEST_LINE * 4))
    assert len(answers) == 1 and "bytes" in answers[0]["error"]


def test_a_flood_is_slowed_and_others_are_served(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "BURST", 5.0)
    flood = threading.Thread(target=raw, args=(server, b'{"command": "echo"}\n' * 200), daemon=True)
    flood.start()
    for _ in range(4):
        assert raw(server, b'{"command": "echo", "text": "a"}\n')[0]["text"] == "a"
    assert flood.is_alive()  # 200 requests at 50 a second


def test_a_client_that_does_not_read_is_left(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "SLOWEST_READER", 0.2)
    monkeypatch.setattr(control, "BURST", 1e9)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(server.path))
        line = json.dumps({"command": "echo", "text": "x" * 60_000}).encode() + b"\n"
        with pytest.raises(OSError):
            for _ in range(200):
                client.sendall(line)
    assert raw(server, b'{"command": "echo"}\n')[0]["ok"]


def test_only_so_many_clients(server: ControlServer) -> None:
    held = []
    try:
        for _ in range(control.MOST_CLIENTS):
            client = Control(server.path, timeout=10)
            assert client.ask("echo")["ok"]
            held.append(client)
        assert "connected already" in raw(server, b"")[0]["error"]
    finally:
        for client in held:
            client.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_kept_out_by_the_file_and_by_name(server: ControlServer) -> None:
    child = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: s.connect(sys.argv[1]); print(s.makefile().readline())\n"
        "except OSError as error: print(type(error).__name__)\n"
    )

    def stranger() -> str:
        command = [sys.executable, "-c", child, str(server.path)]
        return subprocess.run(command, capture_output=True, text=True).stdout

    assert "PermissionError" in stranger()
    folder = server.path.parent
    while folder != Path("/tmp"):  # the doors stand open; the lock still holds
        folder.chmod(0o755)
        folder = folder.parent
    server.path.chmod(0o666)
    assert "belongs to another user" in stranger()


def test_a_second_daemon_is_refused_and_the_first_goes_on(server: ControlServer) -> None:
    second = ControlServer(server.path, handle)
    with pytest.raises(AlreadyRunning, match=rf"process {os.getpid()}.*ctl shutdown"):
        second.open()
    second.close()
    assert raw(server, b'{"command": "echo"}\n')[0]["ok"]


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    path = folder / "c.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = ControlServer(path, handle)
    server.open()
    server.start()
    assert raw(server, b'{"command": "echo"}\n')[0]["ok"]
    server.close()
    assert not path.exists()
    with pytest.raises(NoDaemon, match="crosstalk daemon"):
        Control(path)


def test_places_where_no_socket_can_be(folder: Path) -> None:
    with pytest.raises(SocketRefused, match="longer than"):
        ControlServer(folder / ("x" * 120), handle).open()
    (folder / "file").write_text("mine")
    with pytest.raises(SocketRefused, match="is no socket"):
        ControlServer(folder / "file", handle).open()
    assert (folder / "file").read_text() == "mine"
    with pytest.raises(SocketRefused, match="cannot be made"):
        ControlServer(folder / "file" / "c.sock", handle).open()
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(folder / "other.sock"))
    other.listen()
    with pytest.raises(AlreadyRunning, match="another program"):
        ControlServer(folder / "other.sock", handle).open()
    other.close()
