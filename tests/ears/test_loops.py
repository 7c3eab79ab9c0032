"""Going round in circles is told from saying something twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.ears.loops import looping_words, loops, mostly_loops

CIRCLES = [
    "stop it stop it stop it",
    "I'm going to go to the next one. I'm going to go to the next one. I'm going to go to the next one.",
    "you you you you you you",
    "Thank you. Thank you, thank you! Thank you.",
    "and then I said " + "the same thing again and " * 5,
    "buh " * 60,
]
SPEECH = [
    "",
    "no, no, no, no",
    "stop it, stop it",
    "very very good",
    "one two one two",
    "that that is is that that is not is not is that it it is",
    "we will we will rock you",
]


@pytest.mark.parametrize("text", CIRCLES)
def test_circles(text):
    assert mostly_loops(text.split())


@pytest.mark.parametrize("text", SPEECH)
def test_speech(text):
    assert not loops(text.split())


def test_a_stammer_in_a_long_sentence_is_seen_and_believed():
    text = "and I'm using the codec to codec to codec to encode this message and presumably you have software".split()
    assert looping_words(text) == 4
    assert loops(text)
    assert not mostly_loops(text)


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=8, unique=True), st.integers(5, 12))
def test_any_phrase_often_enough_is_a_loop(phrase, rounds):
    assert looping_words(phrase * rounds) == len(phrase) * (rounds - 1)


@given(st.lists(st.integers(0, 10_000).map(str), unique=True, max_size=60))
def test_words_that_are_all_different_are_none(words):
    assert looping_words(words) == 0
