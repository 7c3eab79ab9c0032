"""`crosstalk daemon` from its wishes to a service: whatever can be wrong is said before a model is loaded."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

from assistant.build import load
from assistant.daemon.config import DaemonConfig, load_config
from assistant.daemon.control import ControlServer
from assistant.daemon.ears import Ears
from assistant.daemon.http import Monitor
from assistant.daemon.log import Log
from assistant.daemon.notify import Notifier
from assistant.daemon.places import socket_path, state_folder
from assistant.daemon.service import Service
from assistant.errors import CrosstalkError, ExitCode
from assistant.personas import load_persona
from assistant.settings import default_paths


class StateRefused(CrosstalkError):
    """The state folder cannot be written."""

    exit_code = ExitCode.OUTPUT


@dataclass(frozen=True)
class DaemonRequest:
    """What the user asked for."""

    config: Path | None = None
    overrides: tuple[str, ...] = ()


class _Late:
    """What the socket and the monitor answer with: the service, once there is one."""

    service: Service | None = None

    def handle(self, request: dict[str, object]) -> dict[str, object]:
        from assistant.daemon.commands import handle

        assert self.service is not None
        return handle(self.service, request)

    def metrics(self) -> bytes:
        return self.service.metrics.page() if self.service is not None else b""

    def health(self) -> dict[str, object]:
        return self.service.health() if self.service is not None else {"ok": False, "state": "starting"}


def run(request: DaemonRequest) -> None:
    """Serve until SIGTERM, SIGINT or `shutdown`. One-line errors for all that keeps a daemon from starting."""
    os.umask(0o077)
    config = load_config(request.config, request.overrides)
    persona = load_persona(config.persona)
    paths = default_paths(persona, config)
    folder = _writable(state_folder(config.state))
    ears = Ears(replace(config.wake, word=config.wake.word or persona.wake_word))
    log, notifier, late = Log(config.log), Notifier(), _Late()
    control = ControlServer(socket_path(config.socket, folder), late.handle)
    control.open()
    monitor = None
    try:
        monitor = _monitor(config, late, log)
        notifier.status("loading")
        parts = load(paths, config)
    except BaseException:
        control.close()
        if monitor is not None:
            monitor.close()
        raise
    try:
        service = Service(config, request.config, request.overrides, parts, persona, folder, ears, log, notifier)
        late.service = service
        _obey_signals(service)
        service.run(control, monitor)
    finally:
        control.close()
        parts.close()


def _monitor(config: DaemonConfig, late: _Late, log: Log) -> Monitor | None:
    if config.http.port is None:
        return None
    monitor = Monitor(config.http.port, late.metrics, late.health)
    log.info("monitoring", address=f"http://127.0.0.1:{monitor.port}/metrics")
    return monitor


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StateRefused(
            f"the state folder {folder} cannot be written ({error.strerror}); set `state:` to another one."
        ) from error
    return folder


def _obey_signals(service: Service) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: service.end(signal.Signals(number).name))
    signal.signal(signal.SIGHUP, lambda *_: service.ask_for_reload())
