"""Readiness and signs of life for systemd, over the datagram socket that it names in $NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping


class Notifier:
    """Tells systemd how the service is; does nothing where there is none."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):  # the abstract namespace
            self._address = "\0" + self._address[1:]
        mine = environment.get("WATCHDOG_PID") in (None, "", str(os.getpid()))
        text = environment.get("WATCHDOG_USEC", "") if mine else ""
        self.watchdog = int(text) / 1e6 if text.isdigit() else 0.0
        """Seconds within which `alive` must be called; 0: nobody waits for it."""

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.sendto("\n".join(lines).encode(), self._address)
        except OSError:  # a service must not end because its manager does not listen
            pass

    def ready(self, status: str) -> None:
        """The service is up."""
        self._send("READY=1", f"STATUS={status}")

    def status(self, text: str) -> None:
        """What `systemctl status` shows."""
        self._send(f"STATUS={text}")

    def alive(self) -> None:
        """The watchdog's sign of life."""
        self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """The config is being read again; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1", "STATUS=stopping")
