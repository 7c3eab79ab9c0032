"""Text that knows where each of its characters comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """How a stretch of text is to be read."""

    PROSE = auto()
    CODE = auto()  # an inline code span: symbols and names
    FIXED = auto()  # already the words to be spoken


@dataclass
class MappedText:
    """A text built from pieces of a source; `starts[i]`, `ends[i]` is the source range behind `text[i]`."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    spans: list[tuple[int, int, Kind]] = field(default_factory=list)  # stretches that are not prose

    def add(self, text: str, start: int, kind: Kind = Kind.PROSE) -> None:
        """Append `text`, which stands letter for letter at `start` in the source."""
        self._span(len(text), kind)
        self.text += text
        self.starts += range(start, start + len(text))
        self.ends += range(start + 1, start + len(text) + 1)

    def put(self, text: str, start: int, end: int, kind: Kind = Kind.PROSE) -> None:
        """Append `text`, which as a whole stands for the source range."""
        self._span(len(text), kind)
        self.text += text
        self.starts += [start] * len(text)
        self.ends += [end] * len(text)

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The source range behind `text[start:end]` (not empty)."""
        return self.starts[start], max(self.ends[start:end])

    def _span(self, length: int, kind: Kind) -> None:
        if kind is not Kind.PROSE and length:
            self.spans.append((len(self.text), len(self.text) + length, kind))
