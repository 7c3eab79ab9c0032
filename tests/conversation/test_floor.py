"""The floor, by cases and by properties over every order of events."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.floor import (
    Act,
    Event,
    FloorRules,
    FloorState,
    OnsetFaded,
    OnsetLikely,
    Phase,
    ReplyEnded,
    ReplySounding,
    ReplyUnheard,
    Scored,
    SoundFell,
    SoundRose,
    SpeechEnded,
    SpeechStarted,
    StopRequested,
    TextEntered,
    Tick,
    Transcribed,
    step,
)

S = 16_000


def run(events: list[Event], state: FloorState | None = None) -> tuple[FloorState, list[tuple[int, Act, str]]]:
    state = state or FloorState()
    acts = []
    for event in events:
        state, actions = step(state, event)
        acts += [(event.t, action.act, action.text) for action in actions]
    return state, acts


def ticks(start: float, end: float) -> list[Event]:
    return [Tick(t) for t in range(round(start * S), round(end * S), 320)]


def said(text: str, start: float, end: float) -> list[Event]:
    return [
        SpeechStarted(round((start + 0.1) * S), round(start * S)),
        SpeechEnded(round((end + 0.08) * S), round(end * S)),
        Transcribed(round((end + 0.15) * S), text, round((end + 0.08) * S), True),
    ]


SPEAKING = FloorState(phase=Phase.SPEAKING, committed="tell me a story")


def test_a_finished_question_is_answered_after_about_200_ms() -> None:
    events = said("What is the capital of France?", 1.0, 2.5)
    events.append(Scored(round(2.66 * S), "What is the capital of France?", 0.95))
    state, acts = run(events + ticks(2.66, 3.5))
    assert state.phase is Phase.THINKING
    (commit,) = acts
    assert commit[1:] == (Act.COMMIT, "What is the capital of France?")
    assert 2.7 * S <= commit[0] <= 2.73 * S


def test_the_fading_of_the_last_word_is_not_waited_for() -> None:
    """The transcript ends 60 ms before the speech does: answered if the words are whole, else the next one decides."""
    for text, finished, answered in (("What time is it?", 0.95, True), ("I would like to", 0.05, False)):
        state, _ = run([SpeechStarted(round(1.1 * S), S), Transcribed(round(2.0 * S), text, round(1.94 * S), True)])
        events = [SpeechEnded(round(2.08 * S), 2 * S), Scored(round(2.1 * S), text, finished)]
        state, acts = run(events + ticks(2.1, 2.9), state)
        assert [act for _, act, _ in acts] == ([Act.COMMIT] if answered else [])


@pytest.mark.parametrize("text", ["I would like to", "My number is five five five", "um", "So I was thinking,"])
def test_unfinished_words_get_time(text: str) -> None:
    events = [*said(text, 1.0, 2.0), Scored(round(2.16 * S), text, 0.05)]
    state, acts = run(events + ticks(2.16, 3.3))
    assert state.phase is Phase.PAUSE and not acts
    state, acts = run(ticks(3.3, 4.5), state)
    assert acts[0][1:] == (Act.COMMIT, text)


def test_the_same_utterance_goes_on_after_a_pause() -> None:
    state, acts = run(said("My number is five", 1.0, 2.0) + ticks(2.2, 2.8))
    state, acts2 = run(said("My number is five five one", 2.8, 3.5), state)
    assert not acts and not acts2
    assert state.phase is Phase.PAUSE and state.text == "My number is five five one"
    assert state.speech_start == 1.0 * S


def test_nothing_accepted_is_forgotten() -> None:
    events = [
        SpeechStarted(17_000, 16_000),
        SpeechEnded(33_000, 32_000),
        Transcribed(36_000, "you", 33_000, False),
        *ticks(2.3, 3.0),
    ]
    state, acts = run(events)
    assert [act for _, act, _ in acts] == [Act.DISCARD]
    assert state.phase is Phase.LISTENING


def test_a_lost_transcript_does_not_lock_the_floor() -> None:
    state, acts = run([SpeechStarted(17_000, 16_000), SpeechEnded(33_000, 32_000), *ticks(2.1, 9.0)])
    assert state.phase is Phase.LISTENING and acts[0][1] is Act.DISCARD


def test_barge_in_ducks_then_stops_on_words() -> None:
    events = [
        OnsetLikely(round(5.04 * S)),
        SpeechStarted(round(5.1 * S), 5 * S),
        *ticks(5.1, 5.4),
        Transcribed(round(5.45 * S), "no wait", round(5.4 * S), True),
    ]
    state, acts = run(events, SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK, Act.DUCK, Act.HOLD, Act.STOP]
    assert acts[2][0] <= 5.32 * S
    assert state.phase is Phase.USER and state.text == "no wait" and state.overlap is None


@pytest.mark.parametrize("text", ["Mm-hmm.", "uh-huh", "Right.", "Okay, I see.", "Yeah. Right."])
def test_a_backchannel_does_not_stop_it(text: str) -> None:
    state, acts = run([*said(text, 5.0, 5.5), *ticks(5.7, 7.0)], SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK, Act.BACKCHANNEL, Act.RESUME]
    assert state.phase is Phase.SPEAKING and state.overlap is None


def test_a_cough_does_not_stop_it() -> None:
    events = [*said("", 5.0, 5.3)[:2], Transcribed(round(5.5 * S), "", round(5.4 * S), False), *ticks(5.5, 7.0)]
    state, acts = run(events, SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK, Act.DISCARD, Act.RESUME]
    assert state.phase is Phase.SPEAKING


def test_a_false_onset_is_undone() -> None:
    _, acts = run([OnsetLikely(80_000), OnsetFaded(83_000)], SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK, Act.RESUME]


def test_a_sudden_sound_is_only_a_reason_to_speak_softer() -> None:
    noise: list[Event] = [SoundRose(80_000), SoundFell(81_600)]
    state, acts = run(noise, SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK, Act.RESUME] and state == SPEAKING
    assert run(noise, FloorState(phase=Phase.PAUSE))[1] == []  # no reason to wait with an answer
    _, acts = run([SpeechStarted(80_000, 79_000), *noise], SPEAKING)
    assert [act for _, act, _ in acts] == [Act.DUCK]


def test_speech_before_the_first_sound_joins_the_turn() -> None:
    thinking = FloorState(phase=Phase.THINKING, committed="What is the weather")
    events = said("in Paris?", 3.0, 3.6)
    state, acts = run(events + ticks(3.8, 6.0), thinking)
    assert [act for _, act, _ in acts] == [Act.HOLD, Act.REVOKE, Act.COMMIT]
    assert acts[-1][2] == "What is the weather in Paris?"


def test_an_unheard_answer_gives_the_words_back() -> None:
    state, acts = run(said("and in Rome?", 5.0, 5.6), SPEAKING)
    assert acts[-1][1] is Act.STOP
    state, acts = run([ReplyUnheard(round(5.8 * S)), *ticks(5.8, 8.0)], state)
    assert acts[-1][1:] == (Act.COMMIT, "tell me a story and in Rome?")


def test_speech_at_the_last_word_becomes_a_turn() -> None:
    events = [SpeechStarted(round(5.1 * S), 5 * S), ReplyEnded(round(5.2 * S))]
    state, _ = run(events, SPEAKING)
    assert state.phase is Phase.USER and state.overlap is None
    events = [SpeechEnded(round(5.9 * S), round(5.8 * S)), Transcribed(6 * S, "And you?", round(5.9 * S), True)]
    _, acts = run(events + ticks(6.0, 8.0), state)
    assert acts[-1][1:] == (Act.COMMIT, "And you?")


@pytest.mark.parametrize("word", ["Stop.", "Wait!", "No."])
def test_one_stop_word_is_enough_however_hard_it_is_to_interrupt(word: str) -> None:
    from dataclasses import replace

    rules = FloorRules()
    rules = replace(rules, overlap=replace(rules.overlap, min_words=4))
    state = SPEAKING
    for event in said(word, 5.0, 5.3):
        state, actions = step(state, event, rules)
    assert [action.act for action in actions] == [Act.STOP]


def test_typing_stops_the_answer_and_is_answered() -> None:
    state, acts = run([TextEntered(80_000, "Hello")], SPEAKING)
    assert [(act, text) for _, act, text in acts] == [(Act.STOP, ""), (Act.COMMIT, "Hello")]


def test_stop_leaves_the_floor_free() -> None:
    state, acts = run([StopRequested(80_000)], SPEAKING)
    assert state.phase is Phase.LISTENING and acts[0][1] is Act.STOP


TEXTS = st.sampled_from(["", "mm-hmm", "what time is it?", "I would like to", "stop", "my number is five"])
KINDS = st.sampled_from(
    [SoundRose, SoundFell, OnsetLikely, OnsetFaded, SpeechStarted, SpeechEnded, Transcribed, Scored, Tick,
     ReplySounding, ReplyEnded, ReplyUnheard, StopRequested, TextEntered]
)  # fmt: skip


@st.composite
def any_events(draw: st.DrawFn) -> list[Event]:
    t = 0
    events: list[Event] = []
    for kind in draw(st.lists(KINDS, max_size=40)):
        t += draw(st.integers(0, 12_000))
        if kind in (SpeechStarted, SpeechEnded):
            events.append(kind(t, max(0, t - draw(st.integers(0, 3_200)))))
        elif kind is Transcribed:
            events.append(Transcribed(t, draw(TEXTS), t - draw(st.integers(0, 8_000)), draw(st.booleans())))
        elif kind is Scored:
            events.append(Scored(t, draw(TEXTS), draw(st.floats(0, 1))))
        elif kind is TextEntered:
            events.append(TextEntered(t, "typed"))
        else:
            events.append(kind(t))
    return events


@settings(max_examples=400, deadline=None)
@given(any_events())
def test_no_order_of_events_breaks_the_floor(events: list[Event]) -> None:
    """Whatever comes: overlaps only while the assistant has the floor, commits carry words, and quiet ends in rest."""
    state = FloorState()
    stopped_after_commit = False
    for event in events:
        before = state
        state, actions = step(state, event)
        for action in actions:
            if action.act is Act.COMMIT:
                assert action.text.strip()
                assert before.phase is Phase.PAUSE or isinstance(event, TextEntered)
                stopped_after_commit = False
            if action.act is Act.STOP:
                assert before.phase in (Phase.THINKING, Phase.SPEAKING)
                stopped_after_commit = True
            if action.act is Act.RESUME:
                assert not stopped_after_commit or before.phase in (Phase.THINKING, Phase.SPEAKING)
        if state.overlap is not None:
            assert state.phase in (Phase.THINKING, Phase.SPEAKING)
        if state.phase is Phase.USER:
            assert state.user_active
    # Both sides fall silent: within ten seconds nobody waits for the other.
    t = events[-1].t if events else 0
    if state.user_active:
        state, _ = step(state, SpeechEnded(t, t))
    for tick in range(t, t + 10 * S, 320):
        state, actions = step(state, Tick(tick))
        if any(action.act is Act.COMMIT for action in actions) or state.phase in (Phase.THINKING, Phase.SPEAKING):
            state, _ = step(state, ReplyEnded(tick))
    assert state.phase is Phase.LISTENING and state.overlap is None


@settings(max_examples=200, deadline=None)
@given(any_events())
def test_an_accepted_utterance_is_answered_or_noted(events: list[Event]) -> None:
    """After any prelude that comes to rest, a plain question is heard and answered: no state is a trap."""
    state, _ = run(events)
    t = (events[-1].t if events else 0) + S
    if state.user_active:
        state, _ = step(state, SpeechEnded(t, t))
    for tick in range(t, t + 12 * S, 320):
        state, _ = step(state, Tick(tick))
        if state.phase in (Phase.THINKING, Phase.SPEAKING):
            state, _ = step(state, ReplyEnded(tick))
    start = t / S + 13
    _, acts = run(said("What time is it?", start, start + 1) + ticks(start + 1.2, start + 4), state)
    assert acts[-1][1] is Act.COMMIT and acts[-1][2].endswith("What time is it?")


def test_a_turn_is_not_ended_while_the_user_seems_to_go_on() -> None:
    events = said("What is the capital of France?", 1.0, 2.5)
    events.append(Scored(round(2.66 * S), "What is the capital of France?", 0.95))
    state, acts = run([*events, OnsetLikely(round(2.68 * S)), *ticks(2.68, 3.0)])
    assert state.phase is Phase.PAUSE and acts == []
    state, acts = run([OnsetFaded(round(3.0 * S)), *ticks(3.0, 3.1)], state)
    assert [act for _, act, _ in acts] == [Act.COMMIT]


def test_a_suspicion_that_never_resolves_does_not_hold_the_turn_for_ever() -> None:
    events = said("What is the capital of France?", 1.0, 2.5)
    events.append(Scored(round(2.66 * S), "What is the capital of France?", 0.95))
    _, acts = run([*events, OnsetLikely(round(2.68 * S)), *ticks(2.68, 3.2)])
    assert [act for _, act, _ in acts] == [Act.COMMIT]


@pytest.mark.parametrize("words", ["Stop!", "Stop talking.", "Be quiet.", "stop, stop"])
@pytest.mark.parametrize("phase", [Phase.SPEAKING, Phase.THINKING])
def test_stop_is_obeyed_and_not_answered(words: str, phase: Phase) -> None:
    state, acts = run(said(words, 1.0, 1.4) + ticks(1.6, 4.0), FloorState(phase=phase, committed="tell me a story"))
    assert [act for _, act, _ in acts if act is not Act.HOLD and act is not Act.DUCK][1:] == [Act.DISCARD]
    assert state.phase is Phase.LISTENING and state.held_text == ""


def test_more_than_stop_is_answered() -> None:
    words = "Stop. What is the capital of France?"
    _, acts = run(said(words, 1.0, 2.4) + ticks(2.6, 5.0), SPEAKING)
    assert acts[-1][1:] == (Act.COMMIT, words)


def test_stop_into_silence_is_a_turn_like_any_other() -> None:
    _, acts = run(said("Stop.", 1.0, 1.4) + ticks(1.6, 4.0))
    assert acts[-1][1] is Act.COMMIT
