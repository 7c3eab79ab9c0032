"""Stable words: agreed on twice, compared without punctuation and case, never the last one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.ears.hypothesis import join_words, split_words
from assistant.ears.stabiliser import Stabiliser, agree, bare, common_prefix, same

words = st.lists(st.sampled_from(["I", "i", "want,", "want", "Tea.", "tea", "two", "2", "wind", "window"]), max_size=9)


@pytest.mark.parametrize(
    ("before", "now", "stable"),
    [
        ("", "", ""),
        ("", "I want", ""),
        ("I want", "I want tea", "I want"),
        ("I want tea", "I want tea", "I want"),
        ("i Want", "I want, tea.", "I want,"),
        ("recognise speech", "wreck a nice beach", ""),
        ("please open the wind", "please open the window", "please open the"),
        ("don't", "Don\u2019t go", "Don\u2019t"),
        ("it costs $5", "It costs 5 dollars", "It costs"),
    ],
)
def test_agreement_by_hand(before, now, stable):
    agreed = agree(before.split(), now.split())
    assert " ".join(agreed.stable) == stable
    assert " ".join(agreed.words) == now


@given(words, words)
def test_agreement(before, now):
    agreed = agree(before, now)
    assert agreed.words == tuple(now)
    assert common_prefix(agreed.stable, before) == len(agreed.stable)
    assert not now or len(agreed.stable) < len(now)
    assert agree(now, now).stable == tuple(now[:-1])


@given(words, words, st.integers(0, 3))
def test_more_held_back_is_a_prefix_of_less(before, now, held_back):
    less, more = agree(before, now, held_back), agree(before, now, held_back + 1)
    assert less.stable[: len(more.stable)] == more.stable


@given(st.lists(words, max_size=8))
def test_a_run_of_hypotheses(hypotheses):
    state = Stabiliser()
    for now in hypotheses:
        earlier, state = state.agreement.stable, state.next(now)
        stable = state.agreement.stable
        # What is shown is the newest hypothesis, up to spelling ...
        assert len(state.agreement.words) == len(now)
        assert all(same(one, other) for one, other in zip(state.agreement.words, now, strict=True))
        # ... and a stable word keeps even its spelling until it is contradicted.
        agreed = common_prefix(earlier, now)
        assert stable[:agreed] == earlier[:agreed]
        # Newly stable words were in two hypotheses running; the last word is not newly stable.
        assert len(stable) <= max(agreed, len(now) - 1, 0)


@given(words)
def test_final_and_reopened(now):
    state = Stabiliser().final(now)
    assert state.agreement.stable == tuple(now)
    assert state.reopened().agreement.stable == tuple(now[:-1])
    assert state.reopened().agreement.words == tuple(now)


def test_longer_utterances_only_grow_while_nothing_is_contradicted():
    said = "could you tell me what the capital of France is please".split()
    state = Stabiliser()
    shown = []
    for count in range(1, len(said) + 1):
        state = state.next(said[:count])
        shown.append(len(state.agreement.stable))
    assert shown == list(range(len(said)))


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("Tea.", "tea"),
        ("'cause", "cause"),
        ("don't,", "don't"),
        ("—", ""),
        ("...", ""),
        ("$3.50.", "$3.50"),
        ("9:30", "9:30"),
        ("U.S.", "us"),
        ("ÄRGER", "ärger"),
    ],
)
def test_bare(word, wanted):
    assert bare(word) == wanted


@given(st.text(alphabet="ab ,.!'日本。", max_size=30))
def test_words_of_text_and_back(text):
    parts = split_words(text)
    assert all(part and not any(map(str.isspace, part)) for part in parts)
    assert "".join(parts) == "".join(text.split())
    assert split_words(join_words(parts)) == parts


def test_scripts_without_spaces_have_words_of_one_character():
    assert split_words("今日は、 good day") == ("今", "日", "は、", "good", "day")
    assert join_words(("今", "日", "は、", "good", "day")) == "今日は、 good day"
