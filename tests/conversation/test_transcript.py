"""Lines to show, from events and turns."""

from __future__ import annotations

from assistant.timeline.events import Event, EventType, Turn
from assistant.transcript import KEPT, Line, Transcript, Who, as_text


def shown(transcript: Transcript) -> list[tuple[str, str, str, bool]]:
    return [(line.who.value, line.text, line.unheard, line.partial) for line in transcript.lines]


def feed(transcript: Transcript, *events: tuple[EventType, str] | tuple[EventType, str, int]) -> list[Line]:
    changed: list[Line] = []
    for type_, text, *turn in events:
        changed += transcript.event(Event(1.0, type_, text=text, turn=turn[0] if turn else None))
    return changed


def test_words_are_partial_until_the_turn_is_over() -> None:
    transcript = Transcript()
    feed(transcript, (EventType.PARTIAL, "what is"), (EventType.PARTIAL, "what is the time"))
    assert shown(transcript) == [("user", "what is the time", "", True)]
    feed(
        transcript,
        (EventType.USER_TURN, "What is the time?", 0),
        (EventType.ASSISTANT_TEXT, "It is noon.", 0),
        (EventType.ASSISTANT_TEXT, " Have lunch.", 0),
    )
    assert shown(transcript) == [
        ("user", "What is the time?", "", False),
        ("assistant", "It is noon. Have lunch.", "", False),
    ]


def test_what_was_not_heard_is_told_apart() -> None:
    transcript = Transcript()
    feed(transcript, (EventType.USER_TURN, "Go on.", 0), (EventType.ASSISTANT_TEXT, "One two three four.", 0))
    feed(transcript, (EventType.PARTIAL, "stop"))
    record = Turn(0, "Go on.", 0.0, 1.0, "One two three four. Five.", "One two", interrupted=True)
    changed = transcript.turn(record)
    assert [(line.text, line.unheard) for line in changed] == [("One two", "three four. Five.")]
    assert transcript.last_turn is record
    assert [line.who for line in transcript.lines] == [Who.USER, Who.ASSISTANT, Who.USER]


def test_an_answer_taken_back_before_it_was_heard_leaves_no_line() -> None:
    transcript = Transcript()
    feed(transcript, (EventType.USER_TURN, "I would like", 0), (EventType.ASSISTANT_TEXT, "Yes?", 0))
    feed(transcript, (EventType.PARTIAL, "to go"), (EventType.DRAFT_DROPPED, "I would like", 0))
    assert shown(transcript) == [("user", "I would like", "", True)]
    feed(transcript, (EventType.PARTIAL, "to go home"))
    assert shown(transcript) == [("user", "I would like to go home", "", True)]
    feed(transcript, (EventType.USER_TURN, "I would like to go home.", 0), (EventType.ASSISTANT_TEXT, "Go.", 0))
    assert shown(transcript) == [
        ("user", "I would like to go home.", "", False),
        ("assistant", "Go.", "", False),
    ]


def test_noise_leaves_nothing_and_a_backchannel_a_note() -> None:
    transcript = Transcript()
    changed = feed(transcript, (EventType.PARTIAL, "you"), (EventType.REJECTED, ""))
    assert shown(transcript) == [] and changed[-1].text == ""
    feed(transcript, (EventType.PARTIAL, "uh-huh"), (EventType.BACKCHANNEL, "uh-huh"))
    assert [(line.who, line.partial) for line in transcript.lines] == [(Who.NOTE, False)]
    feed(transcript, (EventType.REJECTED, ""))
    assert len(transcript.lines) == 1


def test_memory_is_bounded() -> None:
    transcript = Transcript()
    for turn in range(KEPT):
        feed(transcript, (EventType.USER_TURN, f"u{turn}", turn), (EventType.ASSISTANT_TEXT, f"a{turn}", turn))
    assert len(transcript.lines) == KEPT
    assert transcript.lines[-1].text == f"a{KEPT - 1}"


def test_as_text_holds_what_was_heard() -> None:
    transcript = Transcript()
    feed(transcript, (EventType.USER_TURN, "Go on.", 0), (EventType.ASSISTANT_TEXT, "One two three.", 0))
    transcript.turn(Turn(0, "Go on.", 0.0, 1.0, "One two three.", "One two", interrupted=True))
    assert as_text(transcript.lines) == "You: Go on.\nCrosstalk: One two"
