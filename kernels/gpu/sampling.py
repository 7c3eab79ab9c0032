"""Choosing the next token on the card, so that a step can follow another without the host having seen a token.

A choice is the largest of logit / temperature + Gumbel noise over the tokens that top-k, top-p and min-p leave, which
draws from their softmax.  The noise of a token is a function of (seed, step, token): the same seed gives the same
text, whatever else is in the batch.  Ties go to the lower token id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl

from kernels.gpu.launch import launch, power_of_two


@dataclass(frozen=True)
class RowSampling:
    """How one row's token is chosen.  Temperature 0 is greedy; top_k 0, top_p 1 and min_p 0 leave all tokens.

    The order is temperature, top-k, top-p over what top-k left, min-p relative to the likeliest token.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    step: int = 0

    @property
    def cuts(self) -> bool:
        """True when the row needs its tokens in order."""
        return self.temperature > 0 and (self.top_k > 0 or self.top_p < 1 or self.min_p > 0)


def pack_sampling(rows: list[RowSampling]) -> tuple[np.ndarray, np.ndarray]:
    """(float32 [n, 3] of temperature, top_p, min_p; int32 [n, 3] of top_k, seed, step) for the kernels."""
    floats = np.array([(r.temperature, r.top_p, r.min_p) for r in rows], np.float32).reshape(-1, 3)
    whole = np.array([(r.top_k, r.seed & 0x7FFFFFFF, r.step) for r in rows], np.int32).reshape(-1, 3)
    return floats, whole


@triton.jit
def _noise(seed, step, token):
    """Gumbel noise of tokens; `seed` and `step` name the draw."""
    # A key of its own for each step: two steps of one seed must not share a counter.
    uniform = tl.rand(seed ^ (step * 1640531527), token)
    return -tl.log(-tl.log(tl.maximum(uniform, 1e-10)))


@triton.jit
def choose_kernel(logits, ids, floats, whole, out, V, SORTED: tl.constexpr, BLOCK: tl.constexpr):
    """One program a row.  Reads V*4 bytes once (twice, and V*8 more for the ids, when sorted); 20 operations a value.

    SORTED: `logits` are in falling order and `ids` names their tokens, so that cuts are a matter of running sums.
    """
    row = tl.program_id(0)
    start = row.to(tl.int64) * V
    temperature = tl.load(floats + row * 3)
    top_p = tl.load(floats + row * 3 + 1)
    min_p = tl.load(floats + row * 3 + 2)
    top_k = tl.load(whole + row * 3)
    seed = tl.load(whole + row * 3 + 1)
    step = tl.load(whole + row * 3 + 2)
    inverse = 1.0 / tl.where(temperature > 0, temperature, 1.0)
    kept = tl.where((top_k > 0) & (temperature > 0), tl.minimum(top_k, V), V)
    peak = 0.0
    mass = 0.0
    if SORTED:
        peak = tl.load(logits + start)
        for v0 in range(0, kept, BLOCK):
            v = v0 + tl.arange(0, BLOCK)
            z = tl.load(logits + start + v, mask=v < kept, other=float("-inf"))
            mass += tl.sum(tl.exp((z - peak) * inverse), 0)
    best = float("-inf")
    chosen = 0
    before = 0.0
    for v0 in range(0, kept, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        inside = v < kept
        z = tl.load(logits + start + v, mask=inside, other=float("-inf"))
        token = v
        if SORTED:
            token = tl.load(ids + start + v, mask=inside, other=0).to(tl.int32)
            share = tl.exp((z - peak) * inverse) / mass
            sums = tl.cumsum(share, 0)
            # A token stays when what lies before it has not reached top_p: the first always does.
            inside &= (before + sums - share < top_p) & (share * mass >= min_p)
            before += tl.sum(share, 0)
        value = tl.where(inside, z * inverse + tl.where(temperature > 0, _noise(seed, step, token), 0.0), float("-inf"))
        top = tl.max(value, 0)
        first = tl.min(tl.where(value == top, token, 2147483647), 0)
        better = (top > best) | ((top == best) & (first < chosen))
        chosen = tl.where(better, first, chosen)
        best = tl.maximum(top, best)
    tl.store(out + row, chosen)


def choose(logits: torch.Tensor, floats: torch.Tensor, whole: torch.Tensor, out: torch.Tensor, cuts: bool) -> None:
    """Token ids of logits fp32 [n, V] into out int32 [n]; `cuts` when any row has a top-k, top-p or min-p."""
    vocab = logits.shape[1]
    ids = None
    if cuts:
        # Stable, so that equal logits keep the order of their ids.
        logits, ids = torch.sort(logits, dim=-1, descending=True, stable=True)
    launch(
        choose_kernel,
        (len(logits),),
        {"logits": logits, "ids": ids, "floats": floats, "whole": whole, "out": out, "V": vocab},
        {"SORTED": cuts, "BLOCK": min(4096, power_of_two(vocab))},
        num_warps=8,
    )
