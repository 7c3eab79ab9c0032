"""/metrics and /healthz on 127.0.0.1, for this machine's own monitoring."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assistant.errors import CrosstalkError, ExitCode

SLOWEST = 10.0
"""Seconds a client may take to ask."""


class PortInUse(CrosstalkError):
    """Somebody else listens there."""

    exit_code = ExitCode.OUTPUT


class Monitor:
    """Serves two pages. `health()` gives what /healthz answers: with 200 if its `ok` is true, else with 503."""

    def __init__(self, port: int, metrics: Callable[[], bytes], health: Callable[[], dict[str, Any]]) -> None:
        """Raises PortInUse."""

        class Handler(BaseHTTPRequestHandler):
            timeout = SLOWEST
            server_version, sys_version = "crosstalk", ""

            def do_GET(self) -> None:  # noqa: N802
                host = self.headers.get("Host", "")
                if host.split(":")[0] not in ("127.0.0.1", "localhost"):  # a name that points here is another's page
                    self._answer(421, "text/plain", b"This server answers to 127.0.0.1 only.\n")
                elif self.path == "/metrics":
                    self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics())
                elif self.path == "/healthz":
                    about = health()
                    self._answer(200 if about["ok"] else 503, "application/json", json.dumps(about).encode() + b"\n")
                else:
                    self._answer(404, "text/plain", b"There are /metrics and /healthz.\n")

            def _answer(self, code: int, kind: str, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        try:
            self._server = _Server(("127.0.0.1", port), Handler)
        except OSError as error:
            raise PortInUse(
                f"port {port} of 127.0.0.1 cannot be used ({error.strerror}); choose another `http.port`, or 0."
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="monitor", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event."""
