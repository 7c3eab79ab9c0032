"""How much a client may send."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """So many at once, so many a second after that."""

    def __init__(self, burst: float, rate: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._burst = self._left = burst
        self._rate = rate
        self._monotonic = monotonic
        self._seen = monotonic()

    def take(self) -> bool:
        """Whether one more is within the budget."""
        now = self._monotonic()
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
