"""Each kernel against its definition, interpreted: shapes, types, page sizes, ragged lengths, windows, poison."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from kernels.gpu.sampling import RowSampling, _noise, choose, pack_sampling
from tests.kernels.gpu import checks

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


@triton.jit
def write_noise(out, step, BLOCK: tl.constexpr):
    token = tl.arange(0, BLOCK)
    tl.store(out + token, _noise(3, step, token))


FORMS = ("dense", "4bit", "8bit", "4bitw", "8bitw")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", (1, 2, 16, 17))
def test_linear_takes_any_number_of_rows_and_ragged_outputs(form: str, rows: int) -> None:
    checks.check_linear("cpu", form, rows, outputs=37, cols=96)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", (F16, BF16))
@pytest.mark.parametrize("rows", (1, 5))
def test_linear_in_the_compute_types(form: str, dtype: torch.dtype, rows: int) -> None:
    checks.check_linear("cpu", form, rows, outputs=20, cols=192, dtype=dtype)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_longer_than_a_tile_is_summed_over_all_of_it(form: str) -> None:
    checks.check_linear("cpu", form, 1, outputs=5, cols=32 * 131)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_has_the_same_bits_alone_and_among_sixteen(form: str) -> None:
    checks.check_linear("cpu", form, 1, outputs=20, cols=64, batch_invariant=True)


def test_unfolding_puts_every_input_where_its_weight_is_masked() -> None:
    checks.check_unfold("cpu", 96)
    checks.check_unfold("cpu", 1056, BF16)


@pytest.mark.parametrize("width", (32, 96, 100))
@pytest.mark.parametrize(("added", "post"), ((False, False), (True, False), (True, True)))
def test_norm_with_residual(width: int, added: bool, post: bool) -> None:
    checks.check_add_norm("cpu", 3, width, added=added, post=post, picked=None, dtype=BF16)
    checks.check_add_norm("cpu", 1, width, added=added, post=post, picked=None, dtype=F32)


def test_norm_of_picked_rows_leaves_the_residual_alone() -> None:
    checks.check_add_norm("cpu", 4, 64, added=True, post=True, picked=[1, 3], dtype=F32)
    checks.check_add_norm("cpu", 4, 64, added=True, post=False, picked=[2], dtype=BF16)
    checks.check_add_norm("cpu", 4, 64, added=True, post=False, picked=[], dtype=BF16)


@pytest.mark.parametrize("gelu", (False, True))
@pytest.mark.parametrize(("rows", "width", "dtype"), ((1, 96, F32), (3, 40, BF16), (2, 1100, F16)))
def test_gates(gelu: bool, rows: int, width: int, dtype: torch.dtype) -> None:
    checks.check_gate("cpu", rows, width, gelu, dtype)


@pytest.mark.parametrize("form", FORMS)
def test_embedding_rows_and_ids_chosen_on_the_card(form: str) -> None:
    checks.check_embed("cpu", form, 96)


@pytest.mark.parametrize(
    "case",
    (
        {},
        {"norm": True, "bias": True},
        {"turned": 8},
        {"dim": 24, "dtype": BF16},
        {"dtype": F16, "page": 1},
        {"page": 16, "heads": 3, "kv_heads": 3},
        {"quant": 1, "dtype": F16},
        {"quant": 2, "dtype": F16, "norm": True},
    ),
    ids=str,
)
def test_rope_and_the_write_into_pages(case: dict) -> None:
    checks.check_rope_write("cpu", **case)


def test_choosing_tokens() -> None:
    checks.check_choose("cpu")


def test_the_noise_of_a_choice_is_gumbel_noise_of_its_own_step() -> None:
    """Mean 0.5772, variance pi^2 / 6, and no correlation between two steps of a seed."""
    n = 4096
    draws = [torch.empty(n), torch.empty(n)]
    for step, out in enumerate(draws):
        write_noise[(1,)](out, step, BLOCK=n)
        assert abs(float(out.mean()) - 0.5772) < 4 * (1.645 / n) ** 0.5
        assert abs(float(out.var()) - 1.645) < 0.2
    assert abs(float(torch.corrcoef(torch.stack(draws))[0, 1])) < 4 / n**0.5


@pytest.mark.slow
def test_choices_follow_the_softmax() -> None:
    """1,500 draws of 8 tokens: each frequency within four standard deviations of its probability."""
    draws = 1500
    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.0, -3.0, 1.5]).repeat(draws, 1)
    for extra in ({}, {"top_p": 0.8}):
        rows = [RowSampling(temperature=0.8, seed=11, step=i, **extra) for i in range(draws)]
        floats, whole = (torch.from_numpy(part) for part in pack_sampling(rows))
        out = torch.full((draws,), -1, dtype=torch.int32)
        choose(logits, floats, whole, out, bool(extra))
        want = torch.softmax(logits[0].double() / 0.8, 0)
        if extra:
            order = want.argsort(descending=True)
            kept = order[(want[order].cumsum(0) - want[order]) < 0.8]
            want = torch.zeros_like(want).index_copy(0, kept, want[kept] / want[kept].sum())
        found = torch.bincount(out.long(), minlength=8).double() / draws
        spread = (want * (1 - want) / draws).sqrt()
        assert bool(((found - want).abs() <= 4 * spread + 1e-12).all()), (found, want)
