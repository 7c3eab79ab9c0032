"""The timeline's JSON against its schema, and the page drawn from it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import assistant.timeline
from assistant.timeline.events import Event, EventType, Latency, Tokens, Turn, Word
from assistant.timeline.html import render
from assistant.timeline.record import Models, Timeline, write_json

SCHEMA = json.loads((Path(assistant.timeline.__file__).parent / "schema.json").read_text())


def example() -> Timeline:
    timeline = Timeline("wall", "default", Models("tiny", "smol", "joe", "silero"), 24_000, 6.0, "a <b>.wav", True)
    for kind in EventType:
        timeline.event(
            Event(1.23456, kind, turn=0, text="5 < 6 & more", silence=0.2, finished=0.9, reason="why", at=1.0)
        )
    timeline.turn(
        Turn(0, "What <is> it?", 1.0, 2.0, "It is a tree. And more.", "It is", 2.3, 3.0, True,
             Latency(0.2, 0.15, 0.22, 0.25, 0.29, 0.3), Tokens(12, 150, 3, 165, 9, 4, 0),
             (Word("It", 2.3, 2.5), Word("is", 2.5, 2.7), Word("a", 2.7, 2.8, False)))
    )  # fmt: skip
    return timeline


def test_json_follows_the_schema(tmp_path: Path) -> None:
    write_json(tmp_path / "t.json", example())
    data = json.loads((tmp_path / "t.json").read_text())
    jsonschema.validate(data, SCHEMA)
    assert data["events"][0]["t"] == 1.2346
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_the_schema_knows_every_event_type() -> None:
    known = SCHEMA["$defs"]["event"]["properties"]["type"]["enum"]
    assert sorted(known) == sorted(kind.value for kind in EventType)


def test_the_documentation_names_every_event_type() -> None:
    page = (Path(__file__).parents[2] / "docs" / "timeline.md").read_text()
    missing = [kind.value for kind in EventType if f"`{kind.value}`" not in page]
    assert not missing


def test_a_failed_write_leaves_nothing_and_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "t.json"
    target.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda self, other: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError):
        write_json(target, example())
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_a_turn_is_replaced_by_its_newer_state() -> None:
    timeline = example()
    timeline.turn(Turn(0, "x", 0.0, 0.0, heard_text="newer"))
    assert len(timeline.turns) == 1 and timeline.turns[0].heard_text == "newer"


def test_the_page_is_one_self_contained_picture() -> None:
    peaks = np.abs(np.sin(np.arange(300) / 9)).astype(np.float32)
    page = render(example(), peaks, peaks)
    assert "What &lt;is&gt; it?" in page and "300 ms" in page and "<del> a tree. And more.</del>" in page
    assert "http" not in page.replace("http-equiv", "") and "<script" not in page
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    assert svg.count("<polygon") == 2


def test_nothing_happened_is_a_page_too() -> None:
    empty = Timeline("virtual", "default", Models("a", "b", "c", "d"), 24_000)
    jsonschema.validate(empty.as_json(), SCHEMA)
    assert "</html>" in render(empty, np.zeros(0, np.float32), np.zeros(0, np.float32))
