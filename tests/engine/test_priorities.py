"""Another's work must not slow the voice: it is in every step, and what shares a step with it is small."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from engine import Engine, Priority, Sampling
from engine.jobs import Job, Work
from engine.worker import Call
from tests.engine.tiny import fresh_logits, tiny_engine, tiny_file

CHUNK = 32
SPOKEN = 20
SAID = [7, 8, 9, 10, 11]
LONG = [int(i) for i in np.random.default_rng(3).integers(12, 60, 150)]
SAMPLING = Sampling(max_tokens=SPOKEN, stop_at_end_of_turn=False)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = tiny_engine(file=tiny_file(), prefill_chunk=CHUNK, memory_bytes=1 << 19)
    yield engine
    engine.check()
    engine.close()


def steps_of(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[Job, int]]]:
    """Filled while the engine works: what each step computed, as (job, rows)."""
    steps: list[list[tuple[Job, int]]] = []
    plan = engine.scheduler._plan

    def planned() -> list[Work]:
        works = plan()
        if works:
            steps.append([(work.job, work.end - work.seq.filled) for work in works])
        return works

    monkeypatch.setattr(engine.scheduler, "_plan", planned)
    return steps


def held(engine: Engine) -> threading.Event:
    """The engine takes no step until the event is set, so that all that is asked meanwhile is there for the first."""
    gate = threading.Event()
    engine.worker.submit(Call(gate.wait, None))
    return gate


@pytest.mark.parametrize(
    ("priority", "share"), [(Priority.PROBE, 8), (Priority.DRAFT, 8), (Priority.BACKGROUND, 0)], ids=lambda p: str(p)
)
def test_the_voice_is_in_every_step(
    engine: Engine, priority: Priority, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [token.id for token in engine.new_session(SAID).generate(SAMPLING)]
    engine.drop_cache()
    speaking, other = engine.new_session(SAID, priority=Priority.SPEAKING), engine.new_session(priority=priority)
    gate = held(engine)
    steps = steps_of(engine, monkeypatch)
    job = other._append_job(LONG, None, None, tail=False)
    done = engine.worker.submit(job)
    generation = speaking.generate(SAMPLING)
    gate.set()
    assert [token.id for token in generation] == alone
    done.result()

    spoken = [i for i, step in enumerate(steps) if any(who.priority is Priority.SPEAKING for who, _ in step)]
    assert len(spoken) == SPOKEN - 1, "the first token comes from the logits that are there"
    beside = [rows for i in spoken for who, rows in steps[i] if who is job]
    first = spoken[0]
    assert spoken == list(range(first, first + len(spoken))), "no step without the voice until it is done"
    assert max(beside, default=0) == share
    assert sum(rows for step in steps for who, rows in step if who is job) == len(LONG)
    assert np.array_equal(other.last_logits(), fresh_logits(tiny_file(), LONG))


def test_work_of_the_voice_goes_first_whoever_asked_first(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = {p: engine.new_session(priority=p) for p in reversed(Priority)}
    gate = held(engine)
    steps = steps_of(engine, monkeypatch)
    done = []
    for number, session in enumerate(sessions.values()):
        ids = [int(i) for i in np.random.default_rng(number).integers(4, 60, 2 * CHUNK)]
        done.append(engine.worker.submit(session._append_job(ids, None, None, tail=False)))
    gate.set()
    for future in done:
        future.result()
    assert [who.priority for who, _ in steps[0]][0] is min(Priority)
    last = {who.priority: i for i, step in enumerate(steps) for who, _ in step}
    assert sorted(last, key=lambda p: (last[p], p)) == sorted(Priority), "they end in order of priority"
