"""A fixed team of threads that runs a step: a list of phases, each a number of independent items.

The caller is one of the threads; the others wait on a lock, not in a loop.  Within a step items are claimed, not dealt
out: a thread the system has put aside holds up the others only if it sits on a claimed item, so a second busy process
slows a step by its share instead of stalling it.  Waiting at the end of a phase spins for some microseconds, then
sleeps.

A claim carries the number of the step.  A helper that wakes up late finds another number, claims nothing and leaves.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numba import types

from kernels.cpu.call import atomic_add, atomic_load, atomic_swap_if, call6, relax, sleep_microseconds
from kernels.cpu.rowops import load_i64

PHASE_SLOTS = 5
"""Integers of a phase in the program: function address, layer, which, number of items, items a claim."""
CLAIM_SLOTS = 16
"""Integers of a phase's shared state: two counters, each on a cache line of its own."""
SPINS = 3000
"""Looks at the counter before a waiting thread sleeps: some 50 microseconds, longer than most phases differ by."""
NAP = 20
"""Microseconds of such a sleep (the system adds some).  A sleeping thread leaves its core to whoever it waits for."""
RUN_SIGNATURE = types.void(*[types.int64] * 6)
"""Of `run_program`."""


def run_program(program, n_phases, context, state, step, thread):
    """Work through all phases; `state` is 0 for a team of one, else int64 [phases, 16] (next claim; items done)."""
    for p in range(n_phases):
        row = program + p * 8 * PHASE_SLOTS
        function = load_i64(row)
        layer, which = load_i64(row + 8), load_i64(row + 16)
        n_items, grain = load_i64(row + 24), load_i64(row + 32)
        if state == 0:
            call6(function, context, layer, which, 0, n_items, 0)
            continue
        claims = state + p * 8 * CLAIM_SLOTS
        finished = claims + 4 * CLAIM_SLOTS
        while True:
            seen = atomic_load(claims)
            if seen >> 24 != step:
                return
            begin = seen & 0xFFFFFF
            if begin >= n_items:
                break
            end = min(begin + grain, n_items)
            if atomic_swap_if(claims, seen, (step << 24) | end) == 0:
                continue
            call6(function, context, layer, which, begin, end, thread)
            atomic_add(finished, end - begin)
        spins = 0
        while atomic_load(finished) < n_items:
            if atomic_load(claims) >> 24 != step:
                return
            spins += 1
            if spins < SPINS:
                relax()
            else:
                sleep_microseconds(NAP)


class Team:
    """`size` threads, the calling one included, that run programs together.  `close` ends the helpers."""

    def __init__(self, size: int, run) -> None:
        self.size = size
        self._run = run
        self._step = 0
        self._claims = np.zeros((0, CLAIM_SLOTS), np.int64)
        self._wake = [threading.Semaphore(0) for _ in range(size - 1)]
        # The helpers must not keep the team alive: they hold what they need, and a finalizer ends them.
        self._box: list = [None]
        self._finalizer = weakref.finalize(self, _dismiss, self._box, self._wake)
        for number, wake in enumerate(self._wake):
            thread = threading.Thread(
                target=_help, args=(run, wake, self._box, number + 1), name=f"kernel-{number + 1}", daemon=True
            )
            thread.start()

    def run(self, program: np.ndarray, context: np.ndarray) -> None:
        """Run a program int64 [phases, PHASE_SLOTS]; returns when all of it is done.

        Both arrays must stay allocated (their contents may change) while the team lives.
        """
        n_phases = len(program)
        if self.size == 1:
            self._run(program.ctypes.data, n_phases, context.ctypes.data, 0, 0, 0)
            return
        if len(self._claims) < n_phases:
            self._claims = np.zeros((n_phases, CLAIM_SLOTS), np.int64)
        self._step += 1
        claims = self._claims
        # Nobody of this step is at work yet, and those of the last one see that its number is gone.
        claims[:, CLAIM_SLOTS // 2] = 0
        claims[:, 0] = self._step << 24
        self._box[0] = (program, n_phases, context, claims, self._step)
        for wake in self._wake:
            wake.release()
        self._run(program.ctypes.data, n_phases, context.ctypes.data, claims.ctypes.data, self._step, 0)
        # From here on a late helper can claim nothing, so that the caller may change the program.
        claims[:, 0] = 0

    def close(self) -> None:
        """End the helper threads; the team must not be used afterwards."""
        self._finalizer()


def _dismiss(box: list, wake: list[threading.Semaphore]) -> None:
    box[0] = False
    for one in wake:
        one.release()


def _help(run, wake: threading.Semaphore, box: list, number: int) -> None:
    while True:
        wake.acquire()
        job = box[0]
        if job is False:
            return
        program, n_phases, context, claims, step = job
        run(program.ctypes.data, n_phases, context.ctypes.data, claims.ctypes.data, step, number)
