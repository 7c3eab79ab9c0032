"""Speaking out of turn: the rules by cases, the floor's part of it, and a spoken interjection end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.audio.constants import SAMPLE_RATE as S
from assistant.floor import Act, CutIn, FloorState, Overlap, Phase, ReplySounding, SpeechEnded, Tick, Transcribed, step
from assistant.interjection import Eagerness, InterjectionRules, Past, Reason, SilenceRules, allowed, choose, contains

WRONG = Reason("wrong", "No, not Sydney.", hears=("Sydney",), unless=("not Sydney",))
LATE = Reason("late", "Time is up!", after=20.0)
JUDGED = Reason("judged", "That is dangerous.", judged=True)
RULES = InterjectionRules(Eagerness.EAGER, (WRONG, LATE, JUDGED))


@pytest.mark.parametrize(
    ("text", "spoken", "scores", "expected"),
    [
        ("I think it is Sydney", 3 * S, {}, "wrong"),
        ("it is not Sydney of course", 3 * S, {}, None),
        ("I think it is Canberra", 3 * S, {}, None),
        ("well let me see", 21 * S, {}, "late"),
        ("I drink bleach", 3 * S, {"judged": 0.9}, "judged"),
        ("I drink water", 3 * S, {"judged": 0.1}, None),
    ],
)
def test_reasons(text: str, spoken: int, scores: dict[str, float], expected: str | None) -> None:
    chosen = choose(text, spoken, scores, Past(), 100 * S, RULES)
    assert (chosen.name if chosen else None) == expected


def test_off_means_off() -> None:
    assert choose("Sydney", S, {}, Past(), S, replace(RULES, eagerness=Eagerness.OFF)) is None


def test_rare_wants_more_certainty() -> None:
    assert choose("x", S, {"judged": 1.0}, Past(), S, replace(RULES, eagerness=Eagerness.RARE)) is None


def test_cooldown_budget_and_once_a_turn() -> None:
    past = Past().after(WRONG, 100 * S)
    assert choose("Sydney", S, {}, past, 110 * S, RULES) is None
    assert choose("Sydney", S, {}, past, 130 * S, RULES) is None  # given in this turn already
    assert choose("Sydney", S, {}, past.next_turn(), 130 * S, RULES) is WRONG
    spent = Past(0, tuple(range(6)), frozenset())
    assert not allowed(spent, 100 * S, RULES) and allowed(spent, 700 * S, RULES)


@given(st.lists(st.tuples(st.integers(1, 60 * S), st.booleans()), max_size=80))
def test_never_more_than_the_budget(gaps: list[tuple[int, bool]]) -> None:
    past, t, given_at = Past(), 0, []
    for gap, wish in gaps:
        t += gap
        if wish and choose("Sydney", S, {}, past, t, RULES):
            past = past.after(WRONG, t).next_turn()
            given_at.append(t)
    for moment in given_at:
        assert sum(moment <= other < moment + 600 * S for other in given_at) <= RULES.per_ten_minutes
    assert all(b - a >= RULES.cooldown for a, b in zip(given_at, given_at[1:], strict=False))


def test_phrases_are_words_in_a_row() -> None:
    assert contains("Well, I'd say: Sydney!", "sydney") and contains("the opera house", "Opera house")
    assert not contains("Sydneysiders", "Sydney") and not contains("house opera", "opera house")


def test_a_silence_is_broken_so_often_and_no_more() -> None:
    rules = SilenceRules(10 * S, ("Still there?",), at_most=2)
    assert rules.due(10 * S, 0) and not rules.due(9 * S, 0) and not rules.due(60 * S, 2)
    assert not SilenceRules().due(10**9, 0)


TALKING = FloorState(phase=Phase.USER, user_active=True, speech_start=S, text="it is Sydney", text_until=3 * S)


def test_cutting_in_takes_the_floor_and_gives_it_back() -> None:
    state, actions = step(TALKING, CutIn(4 * S, S))
    assert [a.act for a in actions] == [Act.CUT_IN] and actions[0].text == "it is Sydney"
    assert state.phase is Phase.THINKING and state.overlap is Overlap.DUCKED
    state, _ = step(state, ReplySounding(round(4.1 * S)))
    acts = []
    for t in range(round(4.1 * S), round(5.6 * S), 320):
        state, actions = step(state, Tick(t))
        acts += [(t, a.act) for a in actions]
        if t % S < 320:
            state, actions = step(state, Transcribed(t, "because I know it", t, True))
            acts += [(t, a.act) for a in actions]
    assert [act for _, act in acts] == [Act.HOLD, Act.STOP]
    assert all(t >= 5 * S for t, _ in acts)  # not within the grace


def test_a_user_who_gives_way_loses_no_word() -> None:
    state, _ = step(TALKING, CutIn(4 * S, S))
    state, _ = step(state, ReplySounding(round(4.1 * S)))
    state, _ = step(state, SpeechEnded(round(4.6 * S), round(4.5 * S)))
    state, actions = step(state, Transcribed(round(4.7 * S), "because", round(4.6 * S), True))
    assert Act.STOP not in [a.act for a in actions]
    assert state.phase is Phase.SPEAKING and state.overlap is None and state.held_text == "because"


def test_nothing_to_cut_into() -> None:
    for phase in (Phase.LISTENING, Phase.THINKING, Phase.SPEAKING):
        state = FloorState(phase=phase)
        assert step(state, CutIn(S, S)) == (state, ())


PERSONA = """
system: You are a quiz master. Answer in one short sentence.
examples: [{user: "What is the capital of Italy?", assistant: The capital of Italy is Rome.}]
greeting: Welcome to the quiz.
answer_sentences: 2
interjections:
  eagerness: eager
  reasons: [{name: wrong, hears: [Sydney], say: "No, it is not Sydney.", only_say: true}]
"""


def test_a_spoken_interjection(tmp_path: Path, piper_path: Path, smollm2_path: Path, whisper_path: Path) -> None:
    """The user goes on and on about Sydney: cut in at the word, and what was said stays in the history."""
    import numpy as np
    from piper import PiperVoice

    from assistant.audio.resample import resample
    from assistant.build import ModelPaths, converse, load
    from assistant.conversation.workers import InlineWorkers
    from assistant.personas import load_persona
    from assistant.replay import VirtualClock, replay
    from assistant.settings import parse_settings
    from assistant.timeline.events import Event, EventType, Turn

    (tmp_path / "quiz.yaml").write_text(PERSONA)
    voice = PiperVoice.load(piper_path)
    text = (
        "I am sure the capital of Australia is Sydney, because it is so large and so beautiful and everybody knows it."
    )
    raw = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
    speech = 0.7 * resample(raw.astype(np.float32), round(voice.config.sample_rate * 1.15), S)
    sound = np.concatenate([np.zeros(3 * S, np.float32), speech, np.zeros(3 * S, np.float32)])
    frames = iter(sound[: len(sound) // 320 * 320].reshape(-1, 320))

    events: list[Event] = []
    turns: dict[int, Turn] = {}
    parts = load(ModelPaths(smollm2_path, whisper_path, piper_path), parse_settings())
    try:
        persona = load_persona(str(tmp_path / "quiz.yaml"))
        clock = VirtualClock()
        conversation = converse(
            parts, persona, InlineWorkers(), clock.now, events.append, lambda turn: turns.__setitem__(turn.index, turn)
        )
        conversation.greet(persona.greeting)
        replay(conversation, frames, clock, lambda heard, said: None)
        conversation.close()
    finally:
        parts.close()

    assert turns[0].user_text == "" and turns[0].heard_text == "Welcome to the quiz."
    (cut,) = [event for event in events if event.type is EventType.INTERJECTION]
    assert cut.text == "No, it is not Sydney." and cut.reason == "wrong"
    speaking = len(speech) / S + 3
    assert cut.t < speaking - 1.0, "it must cut in while the user still speaks"
    turn = turns[1]
    assert "Sydney" in turn.user_text and turn.speech_start is not None and turn.speech_start < cut.t + 0.1
    assert "No, it is not Sydney.".startswith(turn.heard_text) and turn.heard_text
