"""The bookkeeping around CUDA graphs, with a card that only takes notes: recording, replaying, waiting, forgetting."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from kernels.gpu import graphs
from kernels.gpu.inputs import HostStep


class NotedCard:
    """Stands in for `torch` in `kernels.gpu.graphs`: CPU tensors, and a list of what was asked of the card."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.recording = False
        stream = SimpleNamespace(wait_stream=lambda other: None)
        self.cuda = SimpleNamespace(
            graph_pool_handle=lambda: "pool",
            Stream=lambda device: stream,
            current_stream=lambda device: stream,
            stream=lambda chosen: contextlib.nullcontext(),
            synchronize=lambda device: self.log.append("synchronize"),
            CUDAGraph=lambda: SimpleNamespace(replay=lambda: self.log.append("replay")),
            Event=lambda: SimpleNamespace(synchronize=lambda: self.log.append("wait"), record=lambda: None),
            graph=self.graph,
        )

    @contextlib.contextmanager
    def graph(self, graph: Any, pool: str):
        assert pool == "pool"
        self.recording = True
        yield
        self.recording = False

    def empty(self, *size: int, pin_memory: bool = False, **rest: Any) -> torch.Tensor:
        assert pin_memory
        return torch.empty(*size, **rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> NotedCard:
    card = NotedCard()
    monkeypatch.setattr(graphs, "torch", card)
    return card


def host(value: int, rows: int = 2) -> HostStep:
    names = ("tokens", "positions", "row_seq", "logit_rows")
    return HostStep({name: np.full(rows, value, np.int32) for name in names}, (), ())


def test_a_shape_is_recorded_once_and_then_replayed(card: NotedCard) -> None:
    seen: list[tuple] = []

    def step(inputs: Any, cuts: bool, dry: bool) -> torch.Tensor:
        seen.append((card.recording, dry, cuts, inputs.tokens.tolist()))
        return inputs.tokens

    runner = graphs.StepGraphs(step, torch.device("cpu"))
    first = runner.run(host(1))
    # A dry step to compile, then the recording: only the latter keeps what it chose.
    assert seen == [(False, True, False, [1, 1]), (True, False, False, [1, 1])]
    assert card.log[-1] == "replay"
    second = runner.run(host(9))
    assert second is first and first.tolist() == [9, 9] and len(seen) == 2
    runner.run(host(9), cuts=True)
    runner.run(host(9, rows=4))
    assert len(seen) == 6


def test_the_host_waits_only_when_it_is_as_far_ahead_as_there_are_buffers(card: NotedCard) -> None:
    runner = graphs.StepGraphs(lambda inputs, cuts, dry: inputs.tokens, torch.device("cpu"))
    for turn in range(graphs.AHEAD + 1):
        runner.run(host(turn))
    assert "wait" not in card.log
    runner.run(host(0))
    assert card.log.count("wait") == 1


def test_the_least_used_graph_goes_first_and_never_while_it_may_run(card: NotedCard) -> None:
    recorded: list[int] = []

    def step(inputs: Any, cuts: bool, dry: bool) -> torch.Tensor:
        if not dry:
            recorded.append(len(inputs.tokens))
        return inputs.tokens

    runner = graphs.StepGraphs(step, torch.device("cpu"), limit=2)
    for rows in (1, 2, 1):
        runner.run(host(0, rows))
    before = len(card.log)
    runner.run(host(0, 3))  # throws out 2, not 1
    assert card.log[before] == "synchronize"
    runner.run(host(0, 1))
    assert recorded == [1, 2, 3]
    runner.run(host(0, 2))
    assert recorded == [1, 2, 3, 2]
