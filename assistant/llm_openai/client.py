"""One streaming request to a chat server: deltas as they come, ended at once when nobody wants them any more.

A reader thread waits for the network; whoever takes the deltas waits for it and for the cancel signal at the same
time. A cancel shuts the connection down, which is how such a server learns that it may stop computing.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from assistant.errors import CrosstalkError, ExitCode
from assistant.llm_openai.choice import LlmChoice

LOOK_EVERY = 0.01
"""Seconds between two looks at the cancel signal while the server is silent."""
LONGEST_LINE = 1 << 20


class LlmError(CrosstalkError):
    """The server cannot be reached, or refuses."""

    exit_code = ExitCode.NETWORK


class Rejected(LlmError):
    """The server does not take the request as it is (HTTP 400 or 422)."""


@dataclass(frozen=True)
class Counts:
    """What the server says a request cost."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0


class Server:
    """Where requests go. Any thread."""

    def __init__(self, choice: LlmChoice) -> None:
        """LlmError for an address that is none, or a key that is not there."""
        address = urlsplit(choice.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise LlmError(f"'llm.base_url' should look like http://127.0.0.1:8000/v1, not '{choice.base_url}'.")
        self._secure, self._host, self._port = address.scheme == "https", address.hostname, address.port
        self._path = address.path.rstrip("/")
        self._timeout = choice.timeout
        self._key = ""
        self.name = choice.base_url
        if choice.key_variable is not None:
            self._key = os.environ.get(choice.key_variable, "")
            if not self._key:
                raise LlmError(f"the environment variable {choice.key_variable} ('llm.key_variable') is not set.")

    def models(self) -> list[str]:
        """What the server has. LlmError."""
        connection, answer = self._ask("GET", "/models", None)
        with contextlib.closing(connection), contextlib.closing(answer):  # which may have the socket for itself
            try:
                return [str(entry["id"]) for entry in json.loads(answer.read(LONGEST_LINE))["data"]]
            except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
                raise LlmError(f"{self.name} answers, but not as a model server does.") from error

    def stream(self, request: Mapping[str, Any], cancel: threading.Event) -> Stream:
        """Begin an answer; returns at once."""
        return Stream(self, request, cancel)

    def _ask(
        self, method: str, path: str, body: bytes | None, opened: Callable[[socket.socket], None] = lambda line: None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection: HTTPConnection
        if self._secure:
            context = ssl.create_default_context()
            connection = HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        else:
            connection = HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.connect()
            opened(connection.sock)  # the answer takes it away from the connection
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            why = str(error) or type(error).__name__
            raise LlmError(f"the language model at {self.name} cannot be reached ({why}).") from error
        if answer.status != 200:
            text = answer.read(2000).decode("utf-8", "replace")
            answer.close()
            connection.close()
            kind = Rejected if answer.status in (400, 422) else LlmError
            raise kind(f"the language model at {self.name} refused with {answer.status}: {_message(text)}.")
        return connection, answer


def _message(text: str) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        found = json.loads(text)
        error = found.get("error", found)
        return str(error["message"] if isinstance(error, dict) else error).rstrip(".")[:300]
    return " ".join(text.split())[:300]


class Stream:
    """The deltas of one answer. Iterate on one thread; `close` may be called from any."""

    def __init__(self, server: Server, request: Mapping[str, Any], cancel: threading.Event) -> None:
        self._server = server
        self._request = request
        self._cancel = cancel
        self._deltas: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()
        self._socket: socket.socket | None = None
        self._closed = threading.Event()
        self.counts = Counts()
        self._thread = threading.Thread(target=self._read, name="llm-stream", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[str]:
        """Text as it comes; ends at the answer's end or at a cancel. LlmError."""
        while not self._cancel.is_set() and not self._closed.is_set():
            try:
                delta = self._deltas.get(timeout=LOOK_EVERY)
            except queue.Empty:
                continue
            if delta is None:
                return
            if isinstance(delta, Exception):
                raise delta
            yield delta
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._closed.set()
        if (opened := self._socket) is not None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def _opened(self, opened: socket.socket) -> None:
        self._socket = opened

    def _read(self) -> None:
        try:
            body = json.dumps(self._request).encode()
            connection, answer = self._server._ask("POST", "/chat/completions", body, self._opened)
            with contextlib.closing(connection), contextlib.closing(answer):
                if not self._closed.is_set() and not self._cancel.is_set():
                    self._take(answer)
        except LlmError as error:
            if not self._closed.is_set():
                self._deltas.put(error)
        except (OSError, HTTPException, ValueError) as error:
            if not self._closed.is_set():
                why = str(error) or type(error).__name__
                self._deltas.put(LlmError(f"the answer of {self._server.name} broke off ({why})."))
        finally:
            self._deltas.put(None)

    def _take(self, answer: HTTPResponse) -> None:
        while line := answer.readline(LONGEST_LINE):
            if not line.startswith(b"data:"):
                continue  # comments, event names, the empty line between two events
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            event = json.loads(data)
            if "error" in event:
                raise LlmError(f"the language model at {self._server.name} failed: {_message(data.decode())}.")
            if usage := event.get("usage"):
                details = usage.get("prompt_tokens_details") or {}
                self.counts = Counts(
                    int(usage.get("prompt_tokens") or 0),
                    int(details.get("cached_tokens") or 0),
                    int(usage.get("completion_tokens") or 0),
                )
            for choice in event.get("choices") or ():
                if text := (choice.get("delta") or {}).get("content"):
                    self._deltas.put(text)
        if not self._closed.is_set():
            raise LlmError(f"the answer of {self._server.name} broke off before its end.")
