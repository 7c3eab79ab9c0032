"""Long conversations and many questions: compaction, flat memory, score_many."""

from __future__ import annotations

import numpy as np
import pytest

from engine import EngineError, Sampling
from engine.compaction import CompactionPolicy, Compactor
from engine.score_many import score_many
from tests.engine.test_sessions import KINDS, letters, make, same  # noqa: F401
from tests.engine.tiny import fresh_logits, tiny_engine, tiny_file


def talk(session, compactor, turns, seed=0):
    """Turns of 8 ids each, a chance to compact after each; returns what was swapped."""
    swapped = []
    for i in range(turns):
        compactor.turn_started()
        session.append(letters(8, seed=seed + i))
        done = compactor.between_turns()
        if done is not None:
            swapped.append(done)
        compactor.wait()
    return swapped


@KINDS
def test_a_compacted_session_is_what_a_fresh_one_with_that_history_would_be(make, windows):  # noqa: F811
    engine = make(windows, context=120)
    session = engine.new_session(letters(10, seed=99))
    compactor = Compactor(engine, session, pinned=10, policy=CompactionPolicy(start_at=0.6, keep=0.3))
    swapped = talk(session, compactor, 30)
    assert len(swapped) >= 3 and all(done.after < done.before for done in swapped)
    assert session.ids[:10] == letters(10, seed=99), "the system prompt stays"
    assert session.ids[-8:] == letters(8, seed=29), "and so do the last turns"
    assert len(session) <= 120
    same(session, session.ids)
    compactor.close()


def test_a_barge_in_while_a_copy_is_made(make):  # noqa: F811
    engine = make(context=120)
    session = engine.new_session(letters(10, seed=99))
    compactor = Compactor(engine, session, pinned=10, policy=CompactionPolicy(0.5, 0.3))
    talk(session, compactor, 7)
    compactor.turn_started()
    session.append(letters(8, seed=50))
    compactor.wait()
    session.truncate(len(session) - 11)  # into what the copy already holds
    before = session.ids
    done = compactor.between_turns()
    assert done is not None and session.ids[10:] == before[len(before) - len(session) + 10 :]
    same(session, session.ids)
    compactor.close()


def test_a_summary_stands_for_what_was_dropped(make):  # noqa: F811
    engine = make(context=120)
    session = engine.new_session(letters(10, seed=99))

    def summarise(fork, dropped):
        assert fork.ids[10 : 10 + len(dropped)] == list(dropped)
        assert len(list(fork.generate(Sampling(max_tokens=3, stop_at_end_of_turn=False)))) == 3
        return [7, 7, 7]

    compactor = Compactor(engine, session, 10, CompactionPolicy(0.5, 0.2), summarise)
    swapped = talk(session, compactor, 12)
    assert swapped and session.ids[10:13] == [7, 7, 7]
    same(session, session.ids)
    compactor.close()


def test_an_error_in_a_summary_is_told_and_harms_nothing(make):  # noqa: F811
    engine = make(context=120)
    session = engine.new_session(letters(10, seed=99))

    def summarise(fork, dropped):
        raise ZeroDivisionError("the hook")

    compactor = Compactor(engine, session, 10, CompactionPolicy(0.5, 0.2), summarise)
    with pytest.raises(ZeroDivisionError):
        talk(session, compactor, 12)
    same(session, session.ids)
    compactor.close()


@pytest.mark.parametrize("total", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_memory_stays_flat_however_long_one_talks(total):
    import resource

    engine = tiny_engine(
        file=tiny_file((None, 6), context=2048), device="reference", page_size=16, validate=False, memory_bytes=1 << 20
    )
    session = engine.new_session(letters(20))
    compactor = Compactor(engine, session, pinned=20)
    appended, peaks, ids = 0, [], letters(200)
    while appended < total:
        compactor.turn_started()
        appended += session.append(ids).context and len(ids)
        compactor.between_turns()
        compactor.wait()
        if appended % (total // 10) == 0:
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert len(session) < 2048
    engine.check()
    assert engine.stats.pools[0].peak_held <= 2 * 2048 // 16
    assert peaks[-1] - peaks[2] < 20_000, "kilobytes of resident memory in the last seven tenths"
    compactor.close()
    engine.close()


# ---- score_many --------------------------------------------------------------------------------------------------


def test_score_many_keeps_order_saves_and_stays_small(make):  # noqa: F811
    engine = make()
    head = letters(24)
    requests = [(head + letters(3, seed=i % 5), letters(2 + i % 3, seed=100 + i)) for i in range(20)]
    result = score_many(engine, requests)
    for (context, suffix), score in zip(requests, result.scores, strict=True):
        for k, token in enumerate(suffix):
            row = fresh_logits(engine.file, context + suffix[:k]).astype(np.float64)
            assert abs(score.logprobs[k] - (row[token] - np.log(np.exp(row).sum()))) < 1e-5
    rows = sum(len(suffix) - 1 for _, suffix in requests)
    assert result.forwarded <= 24 + 5 * 3 + rows
    assert result.saved == sum(len(c) + len(s) - 1 for c, s in requests) - result.forwarded
    assert result.peak_pages <= 7 + 20
    assert all(pool.held == 0 for pool in engine.stats.pools)


def test_score_many_refuses_an_empty_context(make):  # noqa: F811
    with pytest.raises(EngineError, match="at least one"):
        score_many(make(), [([], [1])])
