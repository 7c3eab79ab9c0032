"""The timeline as one page to look at: both sides' speech over time, words, markers, latencies.

Static: one file with inline SVG and CSS, nothing loaded from anywhere, readable without scripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from assistant.timeline.envelope import FRAMES_PER_SECOND
from assistant.timeline.events import Event, EventType, Turn
from assistant.timeline.record import Timeline

SECOND = 90
"""Pixels a second."""
LEFT = 96
LANE = 84
USER_MIDDLE = 96
ASSISTANT_MIDDLE = 268
HEIGHT = 360

MARKERS = {
    EventType.ENDPOINT: ("endpoint", "turn over"),
    EventType.DUCK: ("duck", "duck"),
    EventType.HOLD: ("hold", "hold"),
    EventType.RESUME: ("resume", "go on"),
    EventType.BARGE_IN: ("barge", "barge-in"),
    EventType.BACKCHANNEL: ("back", "backchannel"),
    EventType.INTERJECTION: ("barge", "cuts in"),
    EventType.REJECTED: ("rejected", "not speech"),
    EventType.ERROR: ("error", "error"),
}

STYLE = """
:root { color-scheme: light dark; --bg: #fbfaf7; --ink: #23262b; --soft: #6c7079; --line: #dcdad3;
  --user: #2f6fde; --assistant: #c2571a; --good: #1f8a53; --bad: #c22f3d; --warn: #a67c00; }
@media (prefers-color-scheme: dark) { :root { --bg: #16181c; --ink: #e8e6e1; --soft: #9a9ea8; --line: #34373e;
  --user: #74a4ff; --assistant: #ff9d5c; --good: #56c98d; --bad: #ff6b78; --warn: #e3b341; } }
body { margin: 24px; background: var(--bg); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 20px; margin: 0 0 4px; } p.about { color: var(--soft); margin: 0 0 16px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); } svg .soft { fill: var(--soft); }
.wave-user { fill: var(--user); } .wave-assistant { fill: var(--assistant); } .grid { stroke: var(--line); }
.side { font-weight: 600; } .unheard { opacity: .45; text-decoration: line-through; }
.gap { fill: var(--good); opacity: .16; } .gap-text { fill: var(--good); font-weight: 600; }
.m-endpoint, .m-resume { stroke: var(--good); } .m-duck, .m-hold, .m-back, .m-rejected { stroke: var(--warn); }
.m-barge, .m-error { stroke: var(--bad); } .marker { stroke-width: 1.5; stroke-dasharray: 4 3; }
table { border-collapse: collapse; margin-top: 20px; width: 100%; }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 500; font-size: 13px; } td.n { font-variant-numeric: tabular-nums; }
del { color: var(--soft); } .tag { color: var(--bad); font-size: 12px; }
"""


def render(timeline: Timeline, user: NDArray[np.float32], assistant: NDArray[np.float32]) -> str:
    """The page. `user` and `assistant`: peaks in [0, 1], one per 20 ms."""
    width = LEFT + round(timeline.duration * SECOND) + 40
    title = f"Crosstalk: {timeline.source or 'conversation'}"
    about = (
        f"{timeline.duration:.1f} s, persona {timeline.persona}, {timeline.models.asr} / {timeline.models.llm} / "
        f"{timeline.models.voice}, "
        + ("real pace" if timeline.clock == "wall" else "virtual clock: computing took no time")
        + ("" if timeline.complete else "; cut short")
    )
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1><p class=about>{escape(about)}</p>",
        f"<div class=scroll><svg width='{width}' height='{HEIGHT}' role=img aria-label='speech over time'>",
        *_grid(timeline.duration, width),
        *_latencies(timeline.turns),
        _wave(user, USER_MIDDLE, "wave-user"),
        _wave(assistant, ASSISTANT_MIDDLE, "wave-assistant"),
        f"<text x=10 y={USER_MIDDLE + 4} class=side>You</text>",
        f"<text x=10 y={ASSISTANT_MIDDLE + 4} class=side>Assistant</text>",
        *_user_words(timeline.turns),
        *_assistant_words(timeline.turns),
        *_markers(timeline.events),
        "</svg></div>",
        _table(timeline.turns),
        "</html>",
    ]
    return "\n".join(parts)


def _x(seconds: float) -> float:
    return round(LEFT + seconds * SECOND, 1)


def _grid(duration: float, width: int) -> Iterable[str]:
    for second in range(int(duration) + 1):
        yield f"<line class=grid x1={_x(second)} x2={_x(second)} y1=38 y2={HEIGHT - 20} />"
        yield f"<text class=soft x={_x(second) + 3} y={HEIGHT - 6}>{second} s</text>"
    for middle in (USER_MIDDLE, ASSISTANT_MIDDLE):
        yield f"<line class=grid x1={LEFT} x2={width} y1={middle} y2={middle} />"


def _wave(peaks: NDArray[np.float32], middle: int, name: str) -> str:
    if not peaks.size:
        return ""
    heights = np.sqrt(np.clip(peaks, 0.0, 1.0)) * (LANE / 2)
    x = LEFT + np.arange(peaks.size) * (SECOND / FRAMES_PER_SECOND)
    upper = " ".join(f"{a:.1f},{middle - h:.1f}" for a, h in zip(x, heights, strict=True))
    lower = " ".join(f"{a:.1f},{middle + h:.1f}" for a, h in zip(x[::-1], heights[::-1], strict=True))
    return f"<polygon class={name} points='{upper} {lower}' />"


def _latencies(turns: Sequence[Turn]) -> Iterable[str]:
    for turn in turns:
        wait = turn.latency.voice_to_voice
        if wait is None or turn.speech_start is None:
            continue
        left, right = _x(turn.user_end), _x(turn.speech_start)
        yield f"<rect class=gap x={left} width={max(1.0, right - left):.1f} y=38 height={HEIGHT - 68} />"
        y = (USER_MIDDLE + ASSISTANT_MIDDLE) // 2 - 6
        yield f"<text class=gap-text x={left + 2} y={y}>{wait * 1000:.0f} ms</text>"


def _user_words(turns: Sequence[Turn]) -> Iterable[str]:
    for turn in turns:
        yield f"<text x={_x(turn.user_start)} y={USER_MIDDLE + LANE // 2 + 16}>{escape(turn.user_text)}</text>"


def _assistant_words(turns: Sequence[Turn]) -> Iterable[str]:
    following = [turn.speech_start for turn in turns[1:]]
    for turn, until in zip_longest(turns, following):
        for row, word in enumerate(turn.words):
            if not word.heard and until is not None and word.end > until - 0.2:
                break  # the next answer is drawn here; the table has all of the words
            y = ASSISTANT_MIDDLE - LANE // 2 - 8 - 14 * (row % 2)
            kind = "" if word.heard else " class=unheard"
            yield f"<text x={_x(word.start)} y={y}{kind}>{escape(word.text)}</text>"


def _markers(events: Sequence[Event]) -> Iterable[str]:
    for row, event in enumerate(event for event in events if event.type in MARKERS):
        name, label = MARKERS[event.type]
        x = _x(event.t)
        y = 12 + 11 * (row % 3)
        note = escape(f"{event.t:.2f} s {label} {event.text or event.reason or ''}".strip())
        yield (
            f"<g><title>{note}</title><line class='marker m-{name}' x1={x} x2={x} y1=38 y2={HEIGHT - 20} />"
            f"<text class=soft x={x + 2} y={y}>{label}</text></g>"
        )


def _table(turns: Sequence[Turn]) -> str:
    head = (
        "<tr><th>#<th>You<th>Assistant (struck out: not heard)<th>voice to voice<th>endpoint<th>words<th>first token"
        "<th>first clause<th>sound<th>forwarded<th>reused<th>context</tr>"
    )
    return f"<table>{head}{''.join(_row(turn) for turn in turns)}</table>"


def _row(turn: Turn) -> str:
    wait = turn.latency
    stages = (wait.voice_to_voice, wait.endpoint, wait.asr, wait.first_token, wait.first_clause, wait.tts)
    cells = "".join(f"<td class=n>{_ms(stage)}" for stage in stages)
    said = escape(turn.heard_text)
    if turn.interrupted:
        said += f" <del>{escape(turn.assistant_text[len(turn.heard_text) :])}</del> <span class=tag>interrupted</span>"
    tokens = turn.tokens
    return (
        f"<tr><td>{turn.index + 1}<td>{escape(turn.user_text)}<td>{said}{cells}<td class=n>{tokens.forwarded}"
        f"<td class=n>{tokens.referenced + tokens.copied}<td class=n>{tokens.context}</tr>"
    )


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1000:.0f} ms"
