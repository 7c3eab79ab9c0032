"""Push to talk: the key, not the silence, says when a turn is over."""

from __future__ import annotations

from assistant.audio.constants import FRAME
from assistant.floor import (
    Act,
    Action,
    Event,
    FloorState,
    Key,
    Phase,
    SpeechEnded,
    SpeechStarted,
    TalkKey,
    Tick,
    Transcribed,
    step,
)


def after(state: FloorState, *events: Event) -> tuple[FloorState, list[Action]]:
    actions: list[Action] = []
    for event in events:
        state, more = step(state, event)
        actions += more
    return state, actions


SPOKEN = (
    SpeechStarted(5_000, 4_000),
    Transcribed(12_000, "Tell me, hm,", 12_000, True),
    SpeechEnded(13_000, 12_000),
)


def ticks(start: int, end: int) -> list[Event]:
    return [Tick(t) for t in range(start, end, FRAME)]


def test_while_the_key_is_down_no_silence_ends_the_turn() -> None:
    state, actions = after(FloorState(), TalkKey(0, Key.DOWN), *SPOKEN, *ticks(13_000, 400_000))
    assert state.phase is Phase.PAUSE and not actions
    state, actions = after(state, SpeechStarted(400_000, 399_000), *ticks(400_000, 410_000))
    assert state.phase is Phase.USER and not actions


def test_the_key_going_up_ends_it_at_once() -> None:
    state, actions = after(FloorState(), TalkKey(0, Key.DOWN), *SPOKEN, TalkKey(14_000, Key.UP), Tick(14_320))
    assert state.phase is Phase.THINKING
    assert [(action.act, action.text) for action in actions] == [(Act.COMMIT, "Tell me, hm,")]


def test_words_still_being_transcribed_are_waited_for() -> None:
    begun = (TalkKey(0, Key.DOWN), SpeechStarted(5_000, 4_000), TalkKey(11_000, Key.UP), SpeechEnded(13_000, 12_000))
    state, actions = after(FloorState(), *begun, *ticks(13_000, 16_000))
    assert state.phase is Phase.PAUSE and not actions
    state, actions = after(state, Transcribed(16_000, "Yes.", 12_000, True), Tick(16_320))
    assert [action.text for action in actions] == ["Yes."]


def test_without_a_key_turns_end_by_themselves_again() -> None:
    down = (TalkKey(0, Key.DOWN), TalkKey(100, Key.FREE))
    state, actions = after(FloorState(), *down, *SPOKEN, Tick(13_320))
    assert state.phase is Phase.PAUSE and not actions
    state, actions = after(state, *ticks(13_320, 80_000))
    assert [action.act for action in actions] == [Act.COMMIT]
