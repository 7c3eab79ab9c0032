"""A daemon as systemd would start it: a process of its own, with a notify socket, a state and a runtime folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assistant.daemon.client import Control

PATIENCE = 120.0


class Manager:
    """systemd's side of the notify socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                message = self._socket.recv(65_536).decode()
            except OSError:
                return
            with self._changed:
                self.lines += message.splitlines()
                self._changed.notify_all()

    def until(self, told: Callable[[list[str]], bool], of: Box) -> None:
        """Wait until the service has told that."""
        end = time.monotonic() + PATIENCE
        with self._changed:
            while not told(self.lines):
                self._changed.wait(0.5)
                assert of.process.poll() is None, of.log()
                assert time.monotonic() < end, (self.lines[-10:], of.log())

    @property
    def status(self) -> str:
        return next((line[7:] for line in reversed(self.lines) if line.startswith("STATUS=")), "")

    def close(self) -> None:
        self._socket.close()


class Box:
    """A running daemon."""

    def __init__(self, folder: Path, environment: Mapping[str, str], config: str = "", watchdog: float = 20.0) -> None:
        folder.mkdir(exist_ok=True, mode=0o700)
        self.folder = folder
        self._log = folder / "log"
        notify = folder / "notify"
        notify.unlink(missing_ok=True)
        self.manager = Manager(notify)
        (folder / "daemon.yaml").write_text(config)
        self.socket = folder / "run" / "control.sock"
        own = {
            "NOTIFY_SOCKET": str(notify),
            "WATCHDOG_USEC": str(round(watchdog * 1e6)),
            "RUNTIME_DIRECTORY": str(folder / "run"),
            "STATE_DIRECTORY": str(folder / "state"),
            "CROSSTALK_CONFIG": str(folder / "config"),
            "HOME": os.environ.get("HOME", "/root"),
        }
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "assistant.cli", "daemon", "--config", str(folder / "daemon.yaml")],
                env={**environment, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # no terminal
            )

    def log(self) -> str:
        return self._log.read_text()

    def until_ready(self) -> None:
        self.manager.until(lambda lines: "READY=1" in lines, self)

    def ask(self, command: str, **fields: Any) -> dict[str, Any]:
        with Control(self.socket) as control:
            return control.ask(command, **fields)

    def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The status, as soon as it is so."""
        end = time.monotonic() + PATIENCE
        while not true(status := self.ask("status")):
            assert time.monotonic() < end, (status, self.log())
            time.sleep(0.1)
        return status

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self.manager.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.manager.close()
