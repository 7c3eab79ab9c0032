"""What the app's screen is made of: words, meters, the last turn. Each shows plain data and knows no session."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from assistant.floor import Phase
from assistant.live import Status
from assistant.timeline.events import Turn
from assistant.transcript import Line, Who

USER, ASSISTANT, GOOD, WARN, BAD, SOFT = "#7fabff", "#ffa264", "#5acb91", "#e5b84b", "#ff7480", "#8d93a0"
QUIETEST = 50.0
"""Decibels below full scale at which a meter begins."""

FLOOR = {
    Phase.LISTENING: ("listening", GOOD),
    Phase.USER: ("you have the floor", USER),
    Phase.PAUSE: ("you pause", USER),
    Phase.THINKING: ("thinking", WARN),
    Phase.SPEAKING: ("it has the floor", ASSISTANT),
}

STAGES = (
    ("turn over", "endpoint"),
    ("words", "asr"),
    ("first token", "first_token"),
    ("clause", "first_clause"),
    ("voice", "tts"),
    ("you hear it", "voice_to_voice"),
)


class Words(VerticalScroll):
    """Both sides' words, newest at the bottom."""

    can_focus = True

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, Static] = {}

    def show_line(self, line: Line) -> None:
        """A line is new or has changed; without words it has gone."""
        item = self._items.get(line.number)
        if not line.text and not line.unheard:
            if item is not None:
                item.remove()
                del self._items[line.number]
            return
        follow = self.scroll_offset.y >= self.max_scroll_y - 1
        if item is None:
            item = Static(line_text(line), classes=line.who.value)
            self._items[line.number] = item
            self.mount(item)
        else:
            item.update(line_text(line))
        if follow:
            self.call_after_refresh(self.scroll_end, animate=False)


def line_text(line: Line) -> Text:
    """A line as it is shown: partial words dim, unheard ones struck out."""
    if line.who is Who.NOTE:
        return Text(line.text, style=f"italic {SOFT}")
    name, colour = ("you", USER) if line.who is Who.USER else ("it ", ASSISTANT)
    text = Text.assemble((f"{name} ", f"bold {colour}"))
    text.append(line.text, style="dim" if line.partial else "")
    if line.partial:
        text.append(" …", style="dim")
    if line.unheard:
        text.append(" " if line.text else "")
        text.append(line.unheard, style=f"strike {SOFT}")
    return text


class Meters(Static):
    """How loud both sides are."""

    def __init__(self) -> None:
        super().__init__()
        self._peaks = (0.0, 0.0)

    def show_status(self, status: Status) -> None:
        """New levels; a meter falls slower than it rises, so that the eye can follow."""
        user, assistant = max(status.user, default=0.0), max(status.assistant, default=0.0)
        self._peaks = (max(user, self._peaks[0] * 0.6), max(assistant, self._peaks[1] * 0.6))
        muted = status.muted or (status.push_to_talk and not status.talking)
        width = max(4, self.size.width - 4)
        you = Text("muted".ljust(width), style=BAD) if muted else Text(bar(self._peaks[0], width), style=USER)
        self.update(Text.assemble(("you ", SOFT), you, "\n", ("it  ", SOFT), (bar(self._peaks[1], width), ASSISTANT)))


def bar(peak: float, width: int) -> str:
    """A level as a bar of this many cells."""
    decibels = 20 * math.log10(max(peak, 1e-6))
    return cells((decibels + QUIETEST) / QUIETEST, width)


def cells(share: float, width: int) -> str:
    """A share of `width` cells, drawn from the left, half a cell exact."""
    whole, half = divmod(round(max(0.0, min(1.0, share)) * width * 2), 2)
    return ("━" * whole + "╸" * half).ljust(width)


class LastTurn(Static):
    """Where the time of the last turn went, and its tokens."""

    def show_turn(self, turn: Turn) -> None:
        """A turn is over."""
        self.update(Text("\n").join(turn_lines(turn, max(20, self.size.width))))


def turn_lines(turn: Turn, width: int) -> Iterable[Text]:
    """The panel's lines, `width` cells each."""
    wait = turn.latency.voice_to_voice
    yield Text.assemble((milliseconds(wait), f"bold {GOOD}"), (" to its first sound", SOFT))
    longest = max((getattr(turn.latency, name) or 0.0 for _, name in STAGES), default=0.0) or 1.0
    for label, name in STAGES:
        value = getattr(turn.latency, name)
        room = width - 12 - 8
        filled = cells(max(0.0, value or 0.0) / longest, room) if room > 0 else ""
        yield Text.assemble((f"{label:<12}", SOFT), (filled, GOOD), f"{milliseconds(value):>8}")
    yield Text()
    tokens = turn.tokens
    for label, count in (
        ("forwarded", tokens.forwarded),
        ("reused", tokens.referenced + tokens.copied),
        ("context", tokens.context),
    ):
        yield Text.assemble((f"{label:<12}", SOFT), f"{count:>{width - 12}}")


def milliseconds(seconds: float | None) -> str:
    """A time as it is shown."""
    return "–" if seconds is None else f"{round(seconds * 1000)} ms"
