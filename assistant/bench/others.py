"""How much of the machine others used during a measurement: what a latency has to be read beside."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")


class Others:
    """Counts from its making on. Linux only; elsewhere nothing is known."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._busy, self._own = _busy_seconds(), _own_seconds()

    def cores(self) -> float | None:
        """Mean number of cores that other processes kept busy."""
        now = _busy_seconds()
        if now is None or self._busy is None:
            return None
        passed = max(1e-3, time.monotonic() - self._since)
        return round(max(0.0, (now - self._busy) - (_own_seconds() - self._own)) / passed, 2)


def _own_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _busy_seconds() -> float | None:
    """Of all processes on all cores, since the machine started."""
    try:
        user, nice, system, _, _, irq, soft, steal, *_ = map(int, _STAT.read_text().split("\n")[0].split()[1:])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
