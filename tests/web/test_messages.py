"""The messages of the page's socket: what is one, what is none, and that nothing gets lost in them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.floor import Phase
from assistant.live import Status
from assistant.timeline.events import Event, EventType, Latency, Tokens, Turn
from assistant.transcript import Line, Who
from assistant.web import messages
from assistant.web.budget import Budget
from assistant.web.messages import Kind, MessageError, Request


@given(st.lists(st.integers(-32768, 32767), min_size=320, max_size=320), st.integers(0, 2**32 - 1))
def test_a_frame_keeps_every_sample_and_the_position(samples: list[int], played: int) -> None:
    data = played.to_bytes(4, "little") + np.array(samples, "<i2").tobytes()
    frame = messages.read_frame(data)
    assert frame.played == played
    np.testing.assert_array_equal(np.round(frame.pcm * 32768), samples)
    assert frame.pcm.dtype == np.float32 and np.abs(frame.pcm).max() <= 1.0


@pytest.mark.parametrize("length", [0, 3, 4, 640, 643, 645, 8192])
def test_other_lengths_are_no_frames(length: int) -> None:
    with pytest.raises(MessageError, match=f"644 bytes, this one {length}"):
        messages.read_frame(b"\0" * length)


def test_sound_is_clipped_not_wrapped() -> None:
    data = messages.write_frame(np.array([0.0, 1.5, -1.5, 0.5], np.float32))
    assert list(np.frombuffer(data, "<i2")) == [0, 32767, -32767, 16383]


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('{"type":"say","text":" hello "}', Request(Kind.SAY, text="hello")),
        ('{"type":"stop","more":1}', Request(Kind.STOP)),
        ('{"type":"talk","on":true}', Request(Kind.TALK, on=True)),
        ('{"type":"persona","text":"tutor"}', Request(Kind.PERSONA, text="tutor")),
    ],
)
def test_requests(text: str, request_: Request) -> None:
    assert messages.read_request(text) == request_


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '"say"',
        "[" * 5000,
        '{"type":"fly"}',
        '{"type":["say"]}',
        '{"type":"say"}',
        '{"type":"say","text":""}',
        '{"type":"say","text":5}',
        json.dumps({"type": "say", "text": "x" * 2001}),
        '{"type":"mute"}',
        '{"type":"mute","on":"yes"}',
    ],
)
def test_everything_else_is_told_what_a_message_is(text: str) -> None:
    with pytest.raises(MessageError, match="message|needs"):
        messages.read_request(text)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        messages.read_request(text)
    except MessageError:
        pass


def test_records_become_plain_data() -> None:
    turn = Turn(3, "a", 1.0, 2.0, latency=Latency(voice_to_voice=0.31234), tokens=Tokens(7, 8, 9, 24))
    sent = [
        messages.write("line", **messages.line_data(Line(1, Who.USER, 1.5, "hé “you”", partial=True))),
        messages.write("event", **messages.event_data(Event(1.0, EventType.ENDPOINT, turn=2, silence=0.3))),
        messages.write("turn", **messages.turn_data(turn)),
        messages.write("status", **messages.status_data(Status(2.0, Phase.SPEAKING, (0.0, 1.0), (0.5,)))),
    ]
    line, event, turn_, status = (json.loads(text) for text in sent)
    assert line["who"] == "user" and line["text"] == "hé “you”" and line["partial"] is True
    assert event == {"type": "event", "event": "endpoint", "t": 1.0, "turn": 2, "silence": 0.3}
    assert turn_["latency"]["voice_to_voice"] == 0.3123 and turn_["tokens"]["copied"] == 9
    assert status["phase"] == "speaking" and status["user"] == [0, 255] and status["assistant"] == [128]


def test_a_budget_is_a_burst_and_then_a_rate() -> None:
    now = [0.0]
    budget = Budget(burst=3, rate=2, monotonic=lambda: now[0])
    assert [budget.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 1.0
    assert [budget.take() for _ in range(3)] == [True, True, False]
    now[0] = 100.0
    assert sum(budget.take() for _ in range(10)) == 3
