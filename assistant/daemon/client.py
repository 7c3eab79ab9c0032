"""The other end of the control socket: for `crosstalk ctl`, and for programs."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from assistant.errors import CrosstalkError

LONGEST_ANSWER = 1 << 20


class NoDaemon(CrosstalkError):
    """Nobody answers on the socket."""


class Refused(CrosstalkError):
    """The daemon could not do it."""


class Control:
    """One connection; `ask` may be called again and again."""

    def __init__(self, path: Path, timeout: float = 130.0) -> None:
        """Connect; NoDaemon says what to do."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            why = "it belongs to another user" if isinstance(error, PermissionError) else (error.strerror or str(error))
            raise NoDaemon(
                f"no daemon answers on {path} ({why}); start one with `crosstalk daemon`, or give --socket."
            ) from error
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Control:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self._socket.close()

    def ask(self, command: str, **fields: Any) -> dict[str, Any]:
        """What the daemon answers; Refused if it could not do it."""
        request = {"command": command} | {name: value for name, value in fields.items() if value is not None}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._file.readline(LONGEST_ANSWER)
        except OSError as error:
            raise NoDaemon(f"the daemon did not answer ({error.strerror or error}).") from error
        if not line.endswith(b"\n"):
            raise NoDaemon("the daemon closed the connection before it answered.")
        answer: dict[str, Any] = json.loads(line)
        if not answer.get("ok"):
            raise Refused(str(answer.get("error", "the daemon could not do it.")))
        return answer
