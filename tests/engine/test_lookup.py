"""Prompt lookup: the same tokens, in fewer steps where the reply repeats the context."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Engine, Sampling
from engine.generate import Finish
from engine.lookup import PromptLookup
from tests.engine.tiny import tiny_engine

PHRASE = [5, 9, 13, 7, 30, 2, 41, 11]


def test_the_guess_is_what_followed_the_same_words_last_time() -> None:
    lookup = PromptLookup(most=4)
    assert lookup.propose([1, 2, 3, 4, 5, 9, 2, 3], 10) == [4, 5, 9, 2]
    assert lookup.propose([1, 2, 3, 4, 5, 9, 2, 3, 4], 2) == [5, 9]


def test_the_longest_match_wins_and_the_newest_of_equals() -> None:
    ids = [1, 2, 3, 7, 9, 2, 3, 8, 6, 1, 2, 3]
    assert PromptLookup(most=1).propose(ids, 1) == [7]
    assert PromptLookup(most=1).propose([2, 3, 7, 9, 2, 3, 8, 6, 2, 3], 1) == [8]


def test_nothing_is_guessed_from_words_that_never_came_before() -> None:
    assert PromptLookup(most=4).propose([1, 2, 3, 4], 4) == []
    assert PromptLookup(most=4).propose([1], 4) == []


def run(engine: Engine, prompt: list[int], sampling: Sampling) -> tuple[list[int], Finish | None, int, list[int]]:
    """Tokens, reason, model steps, and the session's ids afterwards."""
    with engine.new_session(prompt) as session:
        before = engine.scheduler.steps
        generation = session.generate(sampling)
        tokens = list(generation)
        generation.wait()
        assert [t.n_ids for t in tokens] == list(range(len(prompt) + 1, len(prompt) + 1 + len(tokens)))
        np.testing.assert_array_equal(session.ids[: len(prompt)], prompt)
        steps = engine.scheduler.steps - before
        # What is left behind is a session like any other: its next logits are those of a fresh one.
        fresh = engine.new_session()
        engine.drop_cache()
        fresh.append(session.ids)
        np.testing.assert_allclose(session.last_logits(), fresh.last_logits(), atol=1e-4)
        fresh.close()
        engine.check()
        return [t.id for t in tokens], generation.finish, steps, session.ids


@pytest.mark.parametrize("windows", [(None, None), (12, None)])
@pytest.mark.parametrize("sampling", [
    Sampling(max_tokens=24),
    Sampling(max_tokens=24, temperature=0.9, seed=3),
    Sampling(max_tokens=24, repetition_penalty=1.2),
    Sampling(max_tokens=1),
], ids=["greedy", "sampled", "penalty", "one"])  # fmt: skip
def test_lookup_changes_no_token(windows: tuple[int | None, ...], sampling: Sampling) -> None:
    from dataclasses import replace

    prompt = PHRASE * 4 + [3, 3] + PHRASE[:5]
    with tiny_engine(windows) as engine:
        plain = run(engine, prompt, sampling)
        engine.drop_cache()
        guessed = run(engine, prompt, replace(sampling, lookup=6))
        assert guessed[0] == plain[0] and guessed[1] == plain[1] and guessed[3] == plain[3]
        assert guessed[2] <= plain[2]


def test_a_reply_that_repeats_itself_takes_fewer_steps() -> None:
    """Greedy decoding of a small model goes round in circles now and then, which is found and used."""
    with tiny_engine() as engine:
        plain = run(engine, PHRASE, Sampling(max_tokens=120))
        guessed = run(engine, PHRASE, Sampling(max_tokens=120, lookup=7))
        assert guessed[0] == plain[0]
        assert guessed[2] < 0.8 * plain[2]


def test_cancelling_leaves_no_guess_behind() -> None:
    with tiny_engine() as engine, engine.new_session(PHRASE * 3) as session:
        generation = session.generate(Sampling(max_tokens=100, lookup=6))
        given = [token.id for token, _ in zip(generation, range(9), strict=False)]
        generation.cancel()
        generation.wait()
        rest = [token.id for token in generation]
        assert session.ids[: len(PHRASE * 3) + 9] == PHRASE * 3 + given
        assert len(session) >= len(PHRASE * 3) + len(given) + len(rest)
        engine.check()
