"""Decode steps recorded once and replayed: no Python, no launches and no synchronisation between the kernels.

A graph is recorded for each set of array shapes that `inputs.plan_step` makes (rows, blocks and items in powers of
two, so that a conversation meets a new one only when its context doubles).  The host writes the step's arrays into one
of a few pinned buffers, starts the copy and the replay, and may go on at once: it waits only when it is as many
steps ahead as there are pinned buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from kernels.gpu.inputs import HostStep, StepInputs, device_views

AHEAD = 4
"""Steps the host may be ahead of the card."""


@dataclass
class _Recorded:
    graph: torch.cuda.CUDAGraph
    device: torch.Tensor
    result: torch.Tensor


@dataclass
class _Staging:
    host: torch.Tensor
    copied: torch.cuda.Event


class StepGraphs:
    """The graphs of one model over one cache.  `run` is called by one thread."""

    def __init__(
        self, step: Callable[[StepInputs, bool, bool], torch.Tensor], device: torch.device, limit: int = 64
    ) -> None:
        """`step(inputs, cuts, dry)` starts the kernels and returns what the caller wants; `limit` graphs are kept."""
        self._step = step
        self._device = device
        self._limit = limit
        self._pool = torch.cuda.graph_pool_handle()
        self._recorded: dict[tuple, _Recorded] = {}
        self._staging: dict[int, list[_Staging]] = {}

    def run(self, host: HostStep, cuts: bool = False) -> torch.Tensor:
        """Copy the step's arrays and replay; the result is overwritten by the next run of an equal shape."""
        key = (host.key, cuts)
        recorded = self._recorded.pop(key, None)
        packed = host.packed()
        if recorded is None:
            recorded = self._record(host, packed, cuts)
        else:
            self._send(packed, recorded.device)
        self._recorded[key] = recorded  # last used, last thrown out
        recorded.graph.replay()
        return recorded.result

    def _record(self, host: HostStep, packed: np.ndarray, cuts: bool) -> _Recorded:
        while len(self._recorded) >= self._limit:
            # A graph may still be running: its memory goes back to the pool that the next one records into.
            torch.cuda.synchronize(self._device)
            self._recorded.pop(next(iter(self._recorded)))
        device = torch.from_numpy(packed).to(self._device)
        inputs = device_views(host, device)
        side = torch.cuda.Stream(self._device)
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            # Compiles the kernels and lets libraries make their workspaces, which must not happen while recording.
            # The replay writes the same keys and values again; a dry step keeps its choice of tokens to itself, since
            # the replay starts from the ids that were chosen before.
            self._step(inputs, cuts, True)
        torch.cuda.current_stream(self._device).wait_stream(side)
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = self._step(inputs, cuts, False)
        return _Recorded(graph, device, result)

    def _send(self, packed: np.ndarray, target: torch.Tensor) -> None:
        ring = self._staging.setdefault(len(packed), [])
        if len(ring) < AHEAD:
            ring.append(_Staging(torch.empty(len(packed), dtype=torch.int32, pin_memory=True), torch.cuda.Event()))
            staging = ring[-1]
        else:
            staging = ring.pop(0)
            ring.append(staging)
            staging.copied.synchronize()
        staging.host.numpy()[:] = packed
        target.copy_(staging.host, non_blocking=True)
        staging.copied.record()
