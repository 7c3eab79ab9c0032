"""Random operations against a reference that keeps token lists and computes every logit from nothing.

The exact reference back end promises equal bits however work is cached, chunked or batched, so the comparison is for
equality, not closeness.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine import Cancelled, ContextFull, OutOfPages, Priority, Sampling
from tests.engine.tiny import fresh_logits, tiny_engine, tiny_file

FILES = {
    "full": tiny_file((None, None), context=120),
    "windowed": tiny_file((6, 6), seed=1, context=120),
    "mixed": tiny_file((6, None, 6), seed=2, context=120),
}
tokens = st.lists(st.integers(3, 6), min_size=1, max_size=9)  # few letters: many accidental prefixes


class CountdownCancel:
    """A cancel signal that comes up at its n-th reading: a cancel at any step."""

    def __init__(self, n: int) -> None:
        self.left = n

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.engine = None

    @initialize(
        kind=st.sampled_from(sorted(FILES)),
        page_size=st.sampled_from([1, 4, 16, 256]),
        slack=st.sampled_from([0, 3, None]),
        pages=st.integers(2, 40),
        chunk=st.sampled_from([2, 3, 64]),
    )
    def begin(self, kind, page_size, slack, pages, chunk):
        self.file = FILES[kind]
        positions = max(pages * page_size, 24 * page_size if kind != "full" else 2 * page_size, 100)
        layer_bytes = 2 * 8 * 4
        self.engine = tiny_engine(
            file=self.file,
            page_size=page_size,
            window_slack=slack,
            memory_bytes=int(positions * layer_bytes * len(self.file.shape.layers) * 1.5),
            prefill_chunk=chunk,
            ring_sessions=3,
            max_rows=16,
        )
        self.sessions: list[tuple] = []

    def teardown(self):
        if self.engine is not None:
            for session, _ in self.sessions:
                session.close()
            self.engine.check()
            assert all(pool.held == 0 for pool in self.engine.stats.pools), "something still holds pages"
            self.engine.close()

    def pick(self, data):
        i = data.draw(st.integers(0, len(self.sessions) - 1))
        return i, *self.sessions[i]

    def put(self, i, session, ids):
        self.sessions[i] = (session, ids)

    def expect(self, ids):
        return fresh_logits(self.file, ids)

    @rule(ids=tokens)
    def new(self, ids):
        if len(self.sessions) < 5:
            session = self.engine.new_session()
            try:
                usage = session.append(ids)
            except OutOfPages:
                session.close()
                return
            assert usage.forwarded + usage.referenced + usage.copied == len(ids)
            self.sessions.append((session, list(ids)))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), ids=tokens)
    def append(self, data, ids):
        i, session, log = self.pick(data)
        try:
            session.append(ids)
        except (OutOfPages, ContextFull):
            assert session.ids == log
            return
        self.put(i, session, log + ids)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), ids=tokens, steps=st.integers(0, 4))
    def append_cancelled(self, data, ids, steps):
        i, session, log = self.pick(data)
        try:
            session.append(ids, cancel=CountdownCancel(steps))
        except (Cancelled, OutOfPages, ContextFull):
            assert session.ids == log
            return
        self.put(i, session, log + ids)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), fraction=st.floats(0, 1))
    def truncate(self, data, fraction):
        i, session, log = self.pick(data)
        n = int(len(log) * fraction)
        session.truncate(n)
        self.put(i, session, log[:n])

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def fork(self, data):
        _, session, log = self.pick(data)
        if len(self.sessions) < 5:
            self.sessions.append((session.fork(priority=Priority.SPEAKING), list(log)))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def close(self, data):
        i, session, _ = self.pick(data)
        session.close()
        del self.sessions[i]

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), n=st.integers(1, 6), seed=st.integers(0, 3))
    def generate(self, data, n, seed):
        i, session, log = self.pick(data)
        if not log:
            return
        sampling = Sampling(max_tokens=n, temperature=0.8 if seed else 0.0, seed=seed, stop_at_end_of_turn=False)
        try:
            made = list(session.generate(sampling))
        except OutOfPages:
            self.put(i, session, session.ids)
            return
        if seed == 0:
            for k, token in enumerate(made):
                assert token.id == int(self.expect(log + [t.id for t in made[:k]]).argmax())
        assert session.ids == log + [t.id for t in made]
        self.put(i, session, session.ids)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), steps=st.integers(0, 5))
    def generate_cancelled(self, data, steps):
        i, session, log = self.pick(data)
        if not log:
            return
        try:
            made = list(session.generate(Sampling(max_tokens=8), cancel=CountdownCancel(steps)))
        except OutOfPages:
            made = []
        else:
            assert session.ids == log + [t.id for t in made]
        self.put(i, session, session.ids)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), first=tokens, second=tokens, keep=st.booleans())
    def tentative(self, data, first, second, keep):
        i, session, log = self.pick(data)
        try:
            session.append_tentative(first)
            session.revise(second)
        except (OutOfPages, ContextFull):
            session.rewind()
            session.commit()
            self.put(i, session, session.ids)
            assert session.ids == log
            return
        assert session.ids == log + second and session.tentative == len(second)
        if not keep:
            session.rewind()
        session.commit()
        self.put(i, session, log + second if keep else log)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), suffixes=st.lists(tokens, min_size=1, max_size=4))
    def score(self, data, suffixes):
        _, session, log = self.pick(data)
        if not log:
            return
        try:
            scores = session.score(suffixes, keep_last=True)
        except OutOfPages:
            return
        for suffix, score in zip(suffixes, scores, strict=True):
            assert np.array_equal(score.last, self.expect(log + suffix))
        assert session.ids == log

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def last_logits(self, data):
        _, session, log = self.pick(data)
        if not log:
            return
        try:
            row = session.last_logits()
        except OutOfPages:
            return
        assert np.array_equal(row, self.expect(log)), "cached and uncached differ"

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), first=tokens, second=tokens)
    def together(self, data, first, second):
        """Two appends at once: batched, and sharing what they have in common."""
        if len(self.sessions) < 2:
            return
        results = []

        def run(i, ids):
            session, log = self.sessions[i]
            try:
                session.append(ids)
            except (OutOfPages, ContextFull):
                assert session.ids == log
                return
            results.append((i, session, log + ids))

        threads = [threading.Thread(target=run, args=job) for job in ((0, first), (1, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, session, log in results:
            self.put(i, session, log)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def save_and_load(self, data):
        i, session, log = self.pick(data)
        if not log:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "session"
            try:
                session.save(path)
                session.close()
                self.engine.drop_cache()
                loaded = self.engine.load_session(path)
            except OutOfPages:
                session.close()
                del self.sessions[i]
                return
        self.put(i, loaded, log)

    @precondition(lambda self: self.engine is not None)
    @rule()
    def evict(self):
        self.engine.drop_cache()

    @invariant()
    def sound(self):
        if self.engine is not None:
            self.engine.check()
            for session, log in self.sessions:
                assert session.ids == log


def machine(examples: int, steps: int):
    case = Conversations.TestCase
    case.settings = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return case


TestConversations = machine(100, 30)


@pytest.mark.soak
def test_a_longer_run():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Conversations,
        settings=settings(
            max_examples=1500, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
