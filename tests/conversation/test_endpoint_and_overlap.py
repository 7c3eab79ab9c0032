"""How long to wait, and what words over the assistant mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.endpoint import MS, Calibration, EndpointRules, Evidence, calibrated, finishedness, required_silence
from assistant.overlap import OverlapRules, Reaction, classify, is_backchannel


@pytest.mark.parametrize(
    ("text", "finished"),
    [("What time is it?", 0.9), ("One moment, please.", 0.9), ("Tell me a joke.", 0.95)],
)
def test_sure_turns_end_after_the_short_silence(text: str, finished: float | None) -> None:
    assert required_silence(Evidence(text, finished)) <= 260 * MS


@pytest.mark.parametrize("text", ["Yes.", "Stop.", "No.", "Wait.", "Hello there.", "Thanks!"])
def test_openers_get_a_breath_more(text: str) -> None:
    assert 400 * MS <= required_silence(Evidence(text, 0.9)) <= 450 * MS


@pytest.mark.parametrize("text", ["Yes.", "Stop.", "No.", "Thanks!"])
@pytest.mark.parametrize("finished", [None, 0.1])
def test_one_word_turns_end_whatever_the_engine_thinks(text: str, finished: float | None) -> None:
    assert required_silence(Evidence(text, finished)) <= 450 * MS


@pytest.mark.parametrize(
    "text",
    ["I would like to", "Could you tell me the", "My number is five five five", "Um,", "Well, I think that...", "and"],
)
@pytest.mark.parametrize("finished", [None, 0.1, 0.9])
def test_unfinished_turns_get_more_than_a_second(text: str, finished: float | None) -> None:
    assert required_silence(Evidence(text, finished)) >= 1_200 * MS


@pytest.mark.parametrize("text", ["Could you tell me?", "What is the capital of France?", "Tell me a joke."])
def test_nothing_ends_quickly_before_the_engine_was_asked(text: str) -> None:
    assert required_silence(Evidence(text, None)) >= 400 * MS


@given(st.text(max_size=60), st.one_of(st.none(), st.floats(0, 1)), st.floats(0.5, 4))
def test_the_wait_stays_within_its_rules(text: str, finished: float | None, patience: float) -> None:
    rules = EndpointRules(patience=patience)
    assert 0.0 <= finishedness(Evidence(text, finished)) <= 1.0
    wait = required_silence(Evidence(text, finished), rules)
    assert rules.sure * patience - 1 <= wait <= rules.unfinished * patience + 1


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_finished_never_waits_longer(one: float, other: float) -> None:
    low, high = sorted((one, other))
    text = "Tell me about the moon."
    assert required_silence(Evidence(text, high)) <= required_silence(Evidence(text, low))


def test_calibration_is_a_logistic() -> None:
    assert calibrated(0.0, Calibration(1.0, 0.0)) == 0.5
    assert calibrated(1000.0) > 0.99 and calibrated(-1000.0) < 0.01


@pytest.mark.parametrize("text", ["Mm-hmm.", "Mhm", "uh-huh", "Yeah.", "Right, right.", "Oh okay", "I see.", "Mm hmm"])
def test_listening_noises(text: str) -> None:
    assert is_backchannel(text)
    assert classify(text, 8_000, complete=True) is Reaction.GO_ON
    assert classify(text, 3_000, complete=False) is Reaction.WAIT


@pytest.mark.parametrize("text", ["Stop.", "wait", "No, that's wrong", "What about Rome?", "Yes but why", "I disagree"])
def test_words_that_take_the_floor(text: str) -> None:
    assert classify(text, 8_000, complete=False) is Reaction.STOP


def test_the_first_guess_at_a_word_decides_nothing() -> None:
    assert classify("I", 3_000, complete=False) is Reaction.WAIT
    assert classify("I see.", 6_400, complete=True) is Reaction.GO_ON
    assert classify("I think", 7_000, complete=False) is Reaction.STOP
    assert classify("Stop", 1_800, complete=False) is Reaction.STOP


@pytest.mark.parametrize("text", ["", "...", "—"])
def test_no_words(text: str) -> None:
    assert classify(text, 4_000, complete=False) is Reaction.WAIT
    assert classify(text, 4_000, complete=True) is Reaction.GO_ON


def test_hard_to_interrupt_wants_more_words() -> None:
    hard = OverlapRules(min_words=3)
    assert classify("the weather", 8_000, complete=False, rules=hard) is Reaction.WAIT
    assert classify("the weather tomorrow please", 8_000, complete=False, rules=hard) is Reaction.STOP
    assert classify("stop", 3_000, complete=False, rules=hard) is Reaction.STOP
