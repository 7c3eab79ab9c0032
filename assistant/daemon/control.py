"""The control socket: JSON lines in, JSON lines out, for the user who runs the daemon and for root.

One line asks, one line answers: {"command": "say", "text": "Dinner!"} gives {"ok": true, ...} or
{"ok": false, "error": "..."}. A client may send garbage, flood, or stop reading: it is told so once and left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assistant.errors import CrosstalkError, ExitCode

LONGEST_LINE = 64 * 1024
MOST_CLIENTS = 16
MOST_BAD_LINES = 8
"""Lines that are no request, after which a client is left."""
PER_SECOND = 50.0
BURST = 100.0
"""Requests a client may send; more wait, and what it sends meanwhile stays in its own buffer."""
IDLE = 600.0
SLOWEST_READER = 5.0
LAST_ANSWERS = 1.0
"""Seconds for answers that are under way when the end comes."""
LONGEST_PATH = 107
"""Bytes of a Unix socket's path."""

Handle = Callable[[dict[str, Any]], dict[str, Any]]


class ControlError(CrosstalkError):
    """The socket cannot be opened."""

    exit_code = ExitCode.OUTPUT


class AlreadyRunning(ControlError):
    """Another daemon has this socket."""


class SocketRefused(ControlError):
    """The folder or file does not let us."""


class ControlServer:
    """Opens the socket at `path`, and answers with what `handle` returns. `handle` may be called from any thread."""

    def __init__(self, path: Path, handle: Handle) -> None:
        self.path = path
        self._handle = handle
        self._lock: int | None = None
        self._socket: socket.socket | None = None
        self._closing = threading.Event()
        self._clients: set[socket.socket] = set()
        self._guard = threading.Condition()
        """Held to look at the clients; told when one has left."""
        self._thread = threading.Thread(target=self._accept, name="control", daemon=True)

    def open(self) -> None:
        """Take the socket; a stale one is replaced. AlreadyRunning or SocketRefused."""
        if len(os.fsencode(self.path)) > LONGEST_PATH:
            raise SocketRefused(f"the path of the control socket is longer than {LONGEST_PATH} bytes: {self.path}.")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take_lock()
            self._remove_stale()
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            before = os.umask(0o177)
            try:
                opened.bind(str(self.path))
            finally:
                os.umask(before)
            self.path.chmod(0o600)
            opened.listen(MOST_CLIENTS)
            self._socket = opened
        except OSError as error:
            self._release()
            raise SocketRefused(
                f"the control socket {self.path} cannot be made ({error.strerror}); set `socket:` to another place."
            ) from error
        except ControlError:
            self._release()
            raise

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Leave all clients and remove the socket."""
        self._closing.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self.path.unlink(missing_ok=True)
        with self._guard:
            clients = list(self._clients)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RD)  # what is being answered is still answered
        with self._guard:
            self._guard.wait_for(lambda: not self._clients, LAST_ANSWERS)
        self._release()

    # --- the socket itself ------------------------------------------------------------------------------------

    def _take_lock(self) -> None:
        """A lock that dies with its process: a socket file alone does not tell whether anybody is behind it."""
        file = self.path.with_name(self.path.name + ".lock")
        self._lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.read(self._lock, 32).decode("ascii", "replace").strip() or "unknown"
            raise AlreadyRunning(
                f"another daemon (process {pid}) already answers on {self.path}; end it with `crosstalk ctl shutdown`, "
                "or give this one another `socket:`."
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _remove_stale(self) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            return
        if not self.path.is_socket():
            raise SocketRefused(f"{self.path} is there and is no socket; move it away, or set `socket:`.")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self.path))
            except (ConnectionRefusedError, FileNotFoundError):
                self.path.unlink(missing_ok=True)
                return
        raise AlreadyRunning(f"another program listens on {self.path}; give this daemon another `socket:`.")

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # --- clients ----------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        assert self._socket is not None
        while not self._closing.is_set():
            try:
                client, _ = self._socket.accept()
            except OSError:
                if self._closing.wait(0.1):  # out of file handles: later there may be some again
                    return
                continue
            with self._guard:
                full = len(self._clients) >= MOST_CLIENTS
                if not full:
                    self._clients.add(client)
            if full:
                self._leave(client, f"{MOST_CLIENTS} clients are connected already.")
            elif not _may(client):
                self._leave(client, "this socket belongs to another user.")
            else:
                threading.Thread(target=self._serve, args=(client,), name="control-client", daemon=True).start()

    def _leave(self, client: socket.socket, why: str = "") -> None:
        with contextlib.suppress(OSError):
            client.settimeout(SLOWEST_READER)
            if why:
                client.sendall(_line({"ok": False, "error": why}))
            client.shutdown(socket.SHUT_RDWR)
        client.close()
        with self._guard:
            self._clients.discard(client)
            self._guard.notify_all()

    def _serve(self, client: socket.socket) -> None:
        why = ""
        try:
            why = self._talk(client)
        except OSError:
            pass  # gone, or it does not read
        finally:
            self._leave(client, why)

    def _talk(self, client: socket.socket) -> str:
        """Answer until the client goes; why it is left, if it did not go."""
        pending = bytearray()
        bad = 0
        allowance, at = BURST, time.monotonic()
        while not self._closing.is_set():
            client.settimeout(IDLE)
            chunk = client.recv(16_384)
            if not chunk:
                return ""
            pending += chunk
            while (end := pending.find(b"\n")) >= 0:
                line, pending = bytes(pending[:end]), pending[end + 1 :]
                if not line.strip():
                    continue
                now = time.monotonic()
                allowance, at = min(BURST, allowance + (now - at) * PER_SECOND) - 1, now
                if allowance < 0 and self._closing.wait(-allowance / PER_SECOND):
                    return ""
                answer = self._answer(line)
                bad = 0 if answer["ok"] or "command" in answer else bad + 1
                client.settimeout(SLOWEST_READER)
                client.sendall(_line(answer))
                if bad >= MOST_BAD_LINES:
                    return "too many lines that are no request."
            if len(pending) > LONGEST_LINE:
                return f"a line may have {LONGEST_LINE} bytes."
        return ""

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            return {"ok": False, "error": 'a request is one line of JSON, such as {"command": "status"}.'}
        if not isinstance(request, dict) or not isinstance(request.get("command"), str):
            return {"ok": False, "error": 'a request names a command: {"command": "status"}.'}
        echo = {"id": request["id"]} if isinstance(request.get("id"), (str, int)) else {}
        try:
            answer = self._handle(request)
        except CrosstalkError as error:
            answer = {"ok": False, "error": " ".join(str(error).split())}
        except Exception as error:  # one odd request must not end the socket
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return {"ok": True, "command": request["command"][:40], **echo, **answer}


def _may(client: socket.socket) -> bool:
    """Whether the other end belongs to us or to root. Only Linux tells; elsewhere the file's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (0, os.geteuid())


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, default=str).encode() + b"\n"
