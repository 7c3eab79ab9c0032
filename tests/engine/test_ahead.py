"""A generation that waits for its reader: same tokens, never further ahead than asked, and it can be ended any time."""

from __future__ import annotations

import threading

import pytest

from engine import Engine, Sampling


@pytest.fixture
def engine(smollm2_path):
    with Engine.load(smollm2_path) as engine:
        yield engine


PROMPT = "Once upon a time there was a"
SAMPLING = Sampling(max_tokens=24)


def test_the_tokens_are_the_same_and_not_computed_early(engine: Engine) -> None:
    ids = engine.tokenizer.encode(PROMPT)
    free = [token.id for token in engine.new_session(ids).generate(SAMPLING)]
    session = engine.new_session(ids)
    generation = session.generate(SAMPLING, ahead=3)
    read = []
    for token in generation:
        read.append(token.id)
        engine.worker.call(lambda: None)  # the worker has come to rest or is at most one step on
        assert len(session) - len(ids) <= len(read) + 4
    assert read == free


def test_others_go_on_while_one_waits(engine: Engine) -> None:
    ids = engine.tokenizer.encode(PROMPT)
    waiting = iter(engine.new_session(ids).generate(SAMPLING, ahead=2))
    next(waiting)
    assert len(engine.new_session(ids).generate(SAMPLING).text()) > 0
    assert len(list(waiting)) == 23


def test_a_waiting_generation_can_be_cancelled_and_cut(engine: Engine) -> None:
    ids = engine.tokenizer.encode(PROMPT)
    session = engine.new_session(ids)
    stop = threading.Event()
    generation = session.generate(SAMPLING, ahead=2, cancel=stop)
    first = next(iter(generation))
    stop.set()
    session.truncate(first.n_ids)
    assert session.ids == [*ids, first.id]
    other = session.generate(SAMPLING, ahead=1)
    other.cancel()
    other.wait()
    session.close()
    engine.check()
