"""Sessions on tiny models: counts, sharing, edges, and bit-equality with a run from nothing."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from engine import Cancelled, ContextFull, EngineError, Finish, OutOfPages, Priority, Sampling, SessionClosed
from tests.engine.tiny import fresh_logits, tiny_engine, tiny_file

FULL, WINDOWED, MIXED = (None, None), (6, 6), (6, None, 6)
KINDS = pytest.mark.parametrize("windows", [FULL, WINDOWED, MIXED], ids=["full", "windowed", "mixed"])


def letters(n: int, seed: int = 0) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(4, 60, n)]


def same(session, ids) -> None:
    assert session.ids == ids
    assert np.array_equal(session.last_logits(), fresh_logits(session._engine.file, ids))


@pytest.fixture
def make():
    engines = []

    def build(windows=FULL, **settings):
        file = settings.pop("file", None) or tiny_file(windows)
        engine = tiny_engine(file=file, **settings)
        engine.file = file
        engines.append(engine)
        return engine

    yield build
    for engine in engines:
        engine.check()
        engine.close()


@KINDS
@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 7, 8, 9, 12, 13, 40])
def test_lengths_around_page_and_window_edges(make, windows, n):
    engine = make(windows)
    ids = letters(n)
    same(engine.new_session(ids), ids)


@KINDS
def test_a_complete_hit_still_forwards_one_token(make, windows):
    engine = make(windows)
    ids = letters(12)
    engine.new_session(ids).close()
    again = engine.new_session()
    usage = again.append(ids)
    assert (usage.forwarded, usage.referenced + usage.copied) == (1, 11)
    same(again, ids)


def test_partly_matching_page_is_copied(make):
    engine = make()
    ids = letters(10)
    engine.new_session(ids).close()
    other = engine.new_session()
    usage = other.append([*ids[:6], 60, 61, 62])
    assert (usage.referenced, usage.copied, usage.forwarded) == (4, 2, 3)
    same(other, [*ids[:6], 60, 61, 62])


def test_two_equal_prompts_at_once_are_computed_once(make):
    engine = make(prefill_chunk=2)
    ids = letters(20)
    sessions = [engine.new_session() for _ in range(3)]
    usages = [None] * 3
    threads = [threading.Thread(target=lambda i=i: usages.__setitem__(i, sessions[i].append(ids))) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(usage.forwarded for usage in usages) == [1, 1, 20]
    for session in sessions:
        same(session, ids)


def test_a_leader_cancelled_half_way_leaves_what_it_has_done(make):
    engine = make(prefill_chunk=2)
    ids = letters(20)
    stop = threading.Event()
    steps = []
    engine.scheduler.on_step = lambda: (steps.append(1), stop.set() if engine.scheduler.steps >= 3 else None)
    leader, follower = engine.new_session(), engine.new_session()
    outcome = []

    def lead():
        try:
            leader.append(ids, cancel=stop)
        except Cancelled:
            outcome.append("cancelled")

    thread = threading.Thread(target=lead)
    thread.start()
    usage = follower.append(ids)
    thread.join()
    assert outcome == ["cancelled"] and leader.ids == []
    assert usage.forwarded + usage.referenced + usage.copied == 20
    same(follower, ids)


@KINDS
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 11, 23, 30])
def test_truncate_anywhere_also_over_a_wrapped_ring(make, windows, n):
    engine = make(windows, window_slack=2)
    ids = letters(30)
    session = engine.new_session(ids)
    session.truncate(n)
    grown = [*ids[:n], 60, 61]
    session.append([60, 61])
    same(session, grown)


def test_rollback_within_the_slack_forwards_nothing_again(make):
    engine = make(MIXED, window_slack=8)
    ids = letters(40)
    session = engine.new_session(ids)
    engine.drop_cache()  # nothing but what the session holds itself
    session.truncate(33)
    usage = session.append([60])
    assert usage.forwarded == 1
    same(session, [*ids[:33], 60])


def test_rollback_beyond_the_slack_uses_pages_not_yet_evicted(make):
    engine = make(MIXED, window_slack=0)
    ids = letters(40)
    session = engine.new_session(ids)
    session.truncate(12)
    usage = session.append([60])
    assert usage.forwarded == 1, "the pages behind the window were still there"
    same(session, [*ids[:12], 60])


@KINDS
def test_a_fork_and_its_parent_do_not_disturb_each_other(make, windows):
    engine = make(windows)
    ids = letters(14)
    parent = engine.new_session(ids)
    child = parent.fork()
    parent.append([60, 61])
    child.append([62])
    parent.truncate(9)
    parent.append([59])
    same(child, [*ids, 62])
    same(parent, [*ids[:9], 59])
    parent.close()
    same(child, [*ids, 62])


def test_a_parent_goes_on_without_copying_while_a_fork_reads(make):
    engine = make()
    ids = letters(6)
    parent = engine.new_session(ids)
    child = parent.fork()
    assert parent.append([60]).copied == 0, "the first to extend a shared page does it in place"
    assert child.append([61]).copied == 2, "the second copies"
    same(parent, [*ids, 60])
    same(child, [*ids, 61])


@KINDS
def test_generate_appends_what_it_gives_out(make, windows):
    engine = make(windows)
    session = engine.new_session(letters(9))
    made = list(session.generate(Sampling(max_tokens=20, stop_at_end_of_turn=False)))
    ids = letters(9)
    for token in made:
        assert token.id == int(fresh_logits(engine.file, ids).argmax())
        ids.append(token.id)
        assert token.n_ids == len(ids)
    assert session.ids == ids
    same(session, ids)


def test_the_last_token_stays_pending_and_goes_with_the_next_append(make):
    session = make().new_session(letters(5))
    list(session.generate(Sampling(max_tokens=3, stop_at_end_of_turn=False)))
    assert session.append([60, 61]).forwarded == 3


def test_same_seed_same_tokens_whatever_else_runs(make):
    engine = make()
    sampling = Sampling(max_tokens=12, temperature=1.0, seed=7, stop_at_end_of_turn=False)
    alone = [t.id for t in engine.new_session(letters(5)).generate(sampling)]
    others = [engine.new_session(letters(9, seed=s)) for s in (1, 2, 3)]
    running = [o.generate(Sampling(max_tokens=30, temperature=1.0, stop_at_end_of_turn=False)) for o in others]
    crowded = [t.id for t in engine.new_session(letters(5)).generate(sampling)]
    assert crowded == alone
    for generation in running:
        generation.cancel()


def test_cancel_ends_within_one_step_and_emits_nothing_more(make):
    engine = make()
    session = engine.new_session(letters(5))
    generation = session.generate(Sampling(max_tokens=1000, stop_at_end_of_turn=False))
    seen = []
    for token in generation:
        seen.append(token)
        if len(seen) == 3:
            generation.cancel()
    assert generation.wait() is Finish.CANCELLED
    assert session.ids == letters(5) + [t.id for t in seen]
    same(session, session.ids)


def test_cancel_in_a_prefill_takes_one_step(make):
    engine = make(prefill_chunk=2)
    stop = threading.Event()
    engine.scheduler.on_step = lambda: stop.set() if engine.scheduler.steps == 3 else None
    session = engine.new_session()
    with pytest.raises(Cancelled):
        session.append(letters(200), cancel=stop)
    assert engine.scheduler.steps == 3 and session.ids == []


def test_breaking_out_of_the_loop_cancels(make):
    engine = make()
    session = engine.new_session(letters(5))
    for _token in session.generate(Sampling(max_tokens=100_000, stop_at_end_of_turn=False)):
        break
    session.truncate(5)
    same(session, letters(5))


def test_asyncio_front(make):
    engine = make()

    async def talk():
        session = engine.new_session()
        usage = await session.aappend(letters(6))
        made = [t.id async for t in session.generate(Sampling(max_tokens=5, stop_at_end_of_turn=False))]
        scores = await session.ascore([[5, 6]])
        return usage.forwarded, made, scores[0].logprobs.shape

    forwarded, made, shape = asyncio.run(talk())
    assert (forwarded, len(made), shape) == (6, 5, (2,))


@KINDS
def test_the_tail_is_computed_only_from_the_first_difference(make, windows):
    session = make(windows).new_session(letters(6))
    session.append_tentative([10, 11, 12])
    assert session.revise([10, 11, 13, 14]).forwarded == 2
    assert session.revise([10, 11, 13, 14]).forwarded == 0
    with pytest.raises(EngineError, match="tentative"):
        session.append([1])
    session.commit()
    assert session.append([15]).forwarded == 1
    same(session, [*letters(6), 10, 11, 13, 14, 15])


def test_rewinding_drops_the_tail(make):
    session = make().new_session(letters(6))
    session.append_tentative([10, 11, 12])
    assert session.rewind([10, 9]) == 1
    assert session.tentative == 1
    assert session.rewind() == 0
    same(session, letters(6))


@KINDS
def test_scores_are_what_running_each_suffix_alone_gives(make, windows):
    engine = make(windows)
    ids = letters(13)
    session = engine.new_session(ids)
    before = engine.stats.pools[0].held
    suffixes = [[5], [5, 6, 7], [8, 9], []]
    scores = session.score(suffixes, top=3, keep_last=True)
    for suffix, score in zip(suffixes, scores, strict=True):
        assert np.array_equal(score.last, fresh_logits(engine.file, ids + suffix))
        for k, token in enumerate(suffix):
            row = fresh_logits(engine.file, ids + suffix[:k]).astype(np.float64)
            assert abs(score.logprobs[k] - (row[token] - np.log(np.exp(row).sum()))) < 1e-5
            assert set(score.top[k][0]) == set(np.argsort(-row)[:3])
    assert session.ids == ids and engine.stats.pools[0].held == before


def test_scoring_uses_one_forward_and_shares_the_prefix(make):
    engine = make()
    session = engine.new_session(letters(16))
    steps = engine.scheduler.steps
    session.score([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert engine.scheduler.steps == steps + 1
    assert session.stats.forwarded == 16 + 3 * 2


def test_a_fork_of_a_waiting_generation_does_not_wait_for_its_reader(make):
    engine = make()
    session = engine.new_session(letters(8))
    waiting = iter(session.generate(Sampling(max_tokens=50, stop_at_end_of_turn=False), ahead=1))
    first = next(waiting)
    fork = session.fork()
    fork.append([5])
    same(fork, [*fork.ids[:-1], 5])
    assert fork.ids[8] == first.id


def test_scoring_more_suffixes_than_there_are_pages_takes_several_steps(make):
    engine = make(memory_bytes=2 * 2 * 8 * 4 * 4 * 6)  # six pages
    session = engine.new_session(letters(10))
    suffixes = [[s, 5, 6] for s in range(8)]
    scores = session.score(suffixes, keep_last=True)
    for suffix, score in zip(suffixes, scores, strict=True):
        assert np.array_equal(score.last, fresh_logits(engine.file, letters(10) + suffix))
    assert engine.stats.pools[0].held == 3


def test_scoring_a_session_that_is_speaking(make):
    engine = make()
    session = engine.new_session(letters(8))
    generation = session.generate(Sampling(max_tokens=400, stop_at_end_of_turn=False))
    assert len(session.score([[5, 6]])[0].logprobs) == 2
    assert session.fork().last_logits().shape == (64,)
    generation.cancel()
    generation.wait()
    same(session, session.ids)


def test_prompt_longer_than_the_pool_fails_before_its_first_step(make):
    engine = make(memory_bytes=2 * 2 * 8 * 4 * 4 * 5)  # five pages
    session = engine.new_session()
    with pytest.raises(OutOfPages, match="memory_bytes"):
        session.append(letters(30))
    assert engine.scheduler.steps == 0 and session.ids == []
    session.append(letters(20))
    same(session, letters(20))


def test_idle_sessions_give_way_and_come_back(make):
    engine = make(memory_bytes=2 * 2 * 8 * 4 * 4 * 5)
    first, second = engine.new_session(letters(12)), engine.new_session()
    second.append(letters(16, seed=1))
    same(second, letters(16, seed=1))
    assert first.score([[5, 6, 7]], priority=Priority.SPEAKING)[0].logprobs.shape == (3,)
    same(first, letters(12))


def test_a_pinned_session_does_not(make):
    engine = make(memory_bytes=2 * 2 * 8 * 4 * 4 * 5)
    first = engine.new_session(letters(12))
    first.pin()
    with pytest.raises(OutOfPages):
        engine.new_session(letters(16, seed=1))
    assert first.append([5]).forwarded == 1


def test_the_lowest_priority_pays_for_memory(make):
    engine = make(memory_bytes=2 * 2 * 8 * 4 * 4 * 8, prefill_chunk=4)
    draft = engine.new_session(letters(6), priority=Priority.DRAFT)
    speaking = engine.new_session(letters(6, seed=1))
    drafting = draft.generate(Sampling(max_tokens=500, stop_at_end_of_turn=False))
    spoken = list(speaking.generate(Sampling(max_tokens=20, stop_at_end_of_turn=False)))
    assert len(spoken) == 20
    with pytest.raises(OutOfPages):
        drafting.wait()
    same(speaking, speaking.ids)


def test_context_limit(make):
    engine = make(context=16)
    session = engine.new_session(letters(10))
    with pytest.raises(ContextFull, match="compact"):
        session.append(letters(7))
    generation = session.generate(Sampling(max_tokens=50, stop_at_end_of_turn=False))
    assert len(list(generation)) == 6 and generation.finish is Finish.CONTEXT


def test_closing(make):
    engine = make()
    session = engine.new_session(letters(5))
    generation = session.generate(Sampling(max_tokens=100_000, stop_at_end_of_turn=False))
    session.close()
    assert generation.wait() is Finish.CANCELLED
    with pytest.raises(SessionClosed):
        session.append([1])
    other = engine.new_session(letters(5))
    running = other.generate(Sampling(max_tokens=100_000, stop_at_end_of_turn=False))
    engine.close()
    with pytest.raises(SessionClosed):
        running.wait()
    with pytest.raises(SessionClosed):
        engine.new_session()
    engine.close()


def test_ids_outside_the_vocabulary_are_refused(make):
    session = make().new_session()
    with pytest.raises(EngineError, match="0..63"):
        session.append([64])
    with pytest.raises(EngineError, match="empty"):
        session.last_logits()


@KINDS
def test_pages_behind_the_window_do_not_count(make, windows):
    engine = make(windows, window_slack=4)
    engine.new_session(letters(200))
    for pool in engine.stats.pools:
        assert pool.held == 50 if pool.window is None else pool.held <= 4


@KINDS
def test_ring_and_masked_full_cache_agree_at_every_position(windows):
    file = tiny_file(windows)
    ring, full = tiny_engine(file=file, window_slack=0), tiny_engine(file=file, window_slack=None)
    a, b = ring.new_session(), full.new_session()
    for token in letters(90):
        a.append([token])
        b.append([token])
        assert np.array_equal(a.last_logits(), b.last_logits())
    ring.close()
    full.close()


def test_a_job_that_runs_out_of_pages_half_planned_leaves_no_work_behind(make):
    """Three suffixes, two free pages: the third finds none, the job ends, and the two planned before must not run.

    Found by the fuzz test, which saw the worker stop.
    """
    engine = make(page_size=256, memory_bytes=int(512 * 64 * 2 * 1.5), prefill_chunk=2, max_rows=16)
    first, second = engine.new_session([3]), engine.new_session([3])
    for session in (first, second):
        try:
            assert len(session.score([[3], [3], [3]], keep_last=True)) == 3
        except OutOfPages:
            pass
        engine.check()
    first.close()
    assert len(second.score([[3]])) == 1
