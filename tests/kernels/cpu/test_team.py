"""The team of threads: every item exactly once, every phase after the one before, whoever comes late."""

from __future__ import annotations

import gc
import threading

import numba
import numpy as np
import pytest

from kernels.cpu import jit
from kernels.cpu.call import atomic_add, atomic_load
from kernels.cpu.isa import detect
from kernels.cpu.rowops import load_i64
from kernels.cpu.team import PHASE_SLOTS, Team

PHASES, ITEMS = 40, 64


def count(context, layer, which, begin, end, thread):
    """Counts each item; context: addresses of the counters, of the numbers of items, of a mistake counter."""
    counters, sizes, mistakes = load_i64(context), load_i64(context + 8), load_i64(context + 16)
    for item in range(begin, end):
        if layer > 0:
            for other in range(load_i64(sizes + 8 * (layer - 1))):
                if atomic_load(counters + 8 * ((layer - 1) * ITEMS + other)) != which:
                    atomic_add(mistakes, 1)
        atomic_add(counters + 8 * (layer * ITEMS + item), 1)


@pytest.fixture(scope="module")
def phase_address() -> int:
    return int(numba.cfunc(jit._PHASE)(count).address or 0)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_item_once_and_in_order(threads: int, phase_address: int) -> None:
    """More threads than cores, and another number of items in each step: late helpers find their step gone."""
    team = Team(threads, jit.library(detect()).get(("run",)))
    counters = np.zeros((PHASES, ITEMS), np.int64)
    sizes, mistakes = np.zeros(PHASES, np.int64), np.zeros(1, np.int64)
    context = np.array([counters.ctypes.data, sizes.ctypes.data, mistakes.ctypes.data], np.int64)
    program = np.zeros((PHASES, PHASE_SLOTS), np.int64)
    rng = np.random.default_rng(9)
    for _ in range(200):
        counters[:] = 0
        sizes[:] = rng.integers(0, ITEMS + 1, PHASES)
        program[:, 0], program[:, 1], program[:, 2] = phase_address, np.arange(PHASES), 1
        program[:, 3], program[:, 4] = sizes, rng.integers(1, 9, PHASES)
        team.run(program, context)
        expected = np.arange(ITEMS)[None] < sizes[:, None]
        np.testing.assert_array_equal(counters, expected)
    assert mistakes[0] == 0
    team.close()


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("kernel-")]


def test_helpers_end_with_their_team() -> None:
    run = jit.library(detect()).get(("run",))
    before = helpers()  # some of them, of teams just closed, may be about to end
    closed, dropped = Team(3, run), Team(2, run)
    ours = [thread for thread in helpers() if thread not in before]
    assert len(ours) == 3
    closed.close()
    del dropped
    gc.collect()
    for thread in ours:
        thread.join(10)
        assert not thread.is_alive()
