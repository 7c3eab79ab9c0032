"""Stop strings over a stream of text deltas: what may be shown, what must wait, where it ends."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Holds back text that could be the beginning of a stop string.

    With stop "\\nUser:" the deltas "Yes.", "\\nUs", "ually" give "Yes.", "" and "\\nUsually"; with "\\nUs", "er:" the
    second gives a hit and nothing more is shown.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.held = ""
        self.hit = False

    def push(self, delta: str) -> str:
        """Text that may be shown now.  After a hit `hit` is true and everything later is dropped."""
        if not self.stops:
            return delta
        text = self.held + delta
        found = [at for at in (text.find(stop) for stop in self.stops) if at >= 0]
        if found:
            self.hit, self.held = True, ""
            return text[: min(found)]
        keep = max((_overlap(text, stop) for stop in self.stops), default=0)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The held text, when the stream ends without a hit."""
        text, self.held = self.held, ""
        return text


def _overlap(text: str, stop: str) -> int:
    """Longest end of `text` that is a proper beginning of `stop`."""
    for n in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0
