"""A client of the page's server without a browser: HTTP by hand, the socket through `websockets`."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from assistant.web.messages import FRAME_BYTES


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: str

    def header(self, name: str) -> str:
        """A header, empty if it is not there."""
        return self.headers.get(name.lower(), "")


def get(port: int, path: str, headers: dict[str, str] | None = None) -> Answer:
    """One request, nothing followed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read().decode("utf-8", "replace")
    connection.close()
    return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)


def enter(port: int, token: str) -> str:
    """The cookie that the token buys."""
    answer = get(port, f"/?token={token}")
    assert answer.status == 303 and answer.header("location") == "/"
    return answer.header("set-cookie").split(";")[0]


class Visitor:
    """A page's socket."""

    def __init__(self, port: int, cookie: str, origin: str | None = None) -> None:
        self._open = ExitStack()
        self.socket: ClientConnection = self._open.enter_context(
            connect(
                f"ws://127.0.0.1:{port}/talk",
                origin=Origin(origin or f"http://127.0.0.1:{port}"),
                additional_headers={"Cookie": cookie},
                open_timeout=20,
            )
        )
        self.sounds = 0

    def until(self, type_: str, **content: Any) -> dict[str, Any]:
        """The next message of this type with this content; those before it are skipped."""
        while True:
            data = self.socket.recv(timeout=30)
            if isinstance(data, bytes):
                self.sounds += 1
                continue
            message = json.loads(data)
            if message["type"] == type_ and all(message.get(key) == value for key, value in content.items()):
                return message

    def ask(self, **message: Any) -> None:
        """Send a JSON message."""
        self.socket.send(json.dumps(message))

    def frame(self, level: float = 0.0, played: int = 0) -> None:
        """20 ms of a constant."""
        pcm = np.full(320, round(level * 32767), "<i2")
        data = played.to_bytes(4, "little") + pcm.tobytes()
        assert len(data) == FRAME_BYTES
        self.socket.send(data)

    def close(self) -> None:
        """Go away."""
        self._open.close()
