"""One function a kernel: run it on poisoned buffers, compare with the oracle.  Used interpreted and on a card.

Tolerances are the rounding of the stored result (bf16: 2^-8) plus that of operands rounded to the compute type.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from kernels.contract import RopeSpec
from kernels.gpu.attention import AttentionShape, key_block, wide_tile
from kernels.gpu.inputs import device_views, plan_step
from kernels.gpu.launch import launch, power_of_two
from kernels.gpu.linear import GemvTile, linear
from kernels.gpu.model import attend_group
from kernels.gpu.plan import PlanShape
from kernels.gpu.rowops import add_norm, embed, gate, rope_write_kernel
from kernels.gpu.sampling import RowSampling, choose, pack_sampling
from kernels.gpu.unfold import room, unfold
from tests.kernels.gpu import oracles

TOLERANCE = {torch.float32: 2e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def close(got: torch.Tensor, want: torch.Tensor, tolerance: float, what: str = "") -> None:
    """Largest difference relative to the size of the wanted values; NaN anywhere fails."""
    assert got.shape == want.shape, f"{what}: {tuple(got.shape)} for {tuple(want.shape)}"
    if not want.numel():
        return
    got, want = got.double().cpu(), want.double().cpu()
    scale = max(float(want.abs().max()), 1e-3)
    worst = float((got - want).abs().max()) / scale
    assert worst <= tolerance, f"{what}: off by {worst:.2e} of the largest value, allowed {tolerance:.0e}"


def check_linear(
    device: torch.device | str,
    form: str,
    rows: int,
    outputs: int,
    cols: int,
    dtype: torch.dtype = torch.float32,
    *,
    batch_invariant: bool = False,
    tile: GemvTile | None = None,
    seed: int = 0,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrix = oracles.random_matrix(generator, form, outputs, cols, dtype)
    x = oracles.normal(generator, rows, cols, dtype=dtype)
    # The result lies inside a larger buffer, so that writing beside it shows.
    whole = oracles.poisoned(rows + 1, outputs + 8, device=device)
    out = whole[:rows, 4 : 4 + outputs]
    linear(x.to(device), oracles.to(matrix, device), out, batch_invariant=batch_invariant, tile=tile)
    want = x.double() @ oracles.dense(matrix).T
    close(out, want, TOLERANCE[dtype], form)
    assert bool(
        whole[:rows, :4].isnan().all() and whole[:rows, 4 + outputs :].isnan().all() and whole[rows].isnan().all()
    )


def check_unfold(device: torch.device | str, cols: int, dtype: torch.dtype = torch.float32) -> None:
    x = oracles.normal(torch.Generator().manual_seed(1), 1, cols, dtype=dtype)
    got = unfold(x.to(device)).cpu().double()
    want = torch.full((cols + cols // 32,), float("nan"), dtype=torch.float64)
    for k in range(cols):
        want[k % 4 * (cols // 4) + k // 4] = float(x[0, k]) * 2.0 ** -(8 * (k % 4) + 4 * (k // 16 % 2))
    want[cols:] = x[0].double().view(-1, 32).sum(1)
    assert torch.equal(got[:cols], want[:cols])
    close(got[cols:], want[cols:], 1e-6)


def check_add_norm(
    device: torch.device | str,
    rows: int,
    width: int,
    *,
    added: bool,
    post: bool,
    picked: list[int] | None,
    dtype: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(2)
    x, weight, post_weight = (oracles.normal(generator, *size) for size in ((rows, width), (width,), (width,)))
    more = oracles.normal(generator, rows, width, dtype=dtype)
    eps = 1e-5

    def rms(values: torch.Tensor) -> torch.Tensor:
        return values / (values.pow(2).mean(-1, keepdim=True) + eps).sqrt()

    want_x = x.double()
    if added:
        want_x = want_x + (rms(more.double()) * post_weight if post else more.double())
    want = rms(want_x) * weight
    got_x = x.clone().to(device)
    count = rows if picked is None else len(picked)
    out = oracles.poisoned(count, width, dtype=dtype, device=device)
    folds = room(width, torch.device(device)).fill_(float("nan")) if count == 1 and width % 32 == 0 else None
    add_norm(
        got_x,
        more.to(device) if added else None,
        post_weight.to(device) if post else None,
        weight.to(device),
        eps,
        out,
        None if picked is None else torch.tensor(picked, dtype=torch.int32, device=device),
        folds,
    )
    close(out, want if picked is None else want[picked], TOLERANCE[dtype], "norm")
    close(got_x, want_x if picked is None else x, 1e-6, "residual")
    if folds is not None:
        plain = (want if picked is None else want[picked]).float().reshape(1, -1)
        close(folds, unfold(plain.to(device)), 1e-5, "unfolded")


def check_gate(device: torch.device | str, rows: int, width: int, gelu: bool, dtype: torch.dtype) -> None:
    pair = oracles.normal(torch.Generator().manual_seed(3), rows, 2 * width) * 6
    out = oracles.poisoned(rows, width, dtype=dtype, device=device)
    folds = room(width, torch.device(device)).fill_(float("nan")) if rows == 1 and width % 32 == 0 else None
    gate(pair.to(device), gelu, out, folds)
    a, b = pair[:, :width].double(), pair[:, width:].double()
    act = torch.nn.functional.gelu(a, approximate="tanh") if gelu else torch.nn.functional.silu(a)
    close(out, act * b, TOLERANCE[dtype], "gate")
    if folds is not None:
        close(folds, unfold((act * b).float().to(device)), 1e-5, "unfolded")


def check_embed(device: torch.device | str, form: str, width: int, dtype: torch.dtype = torch.float32) -> None:
    table = oracles.random_matrix(torch.Generator().manual_seed(4), form, 11, width, dtype)
    tokens = torch.tensor([3, 0, -2, 10, -1], dtype=torch.int32)
    last = torch.tensor([7, 5], dtype=torch.int32)  # -1 is what row 0 chose, -2 what row 1 chose
    out = oracles.poisoned(5, width, device=device)
    embed(tokens.to(device), last.to(device), oracles.to(table, device), 1.5, out)
    close(out, oracles.dense(table)[[3, 0, 5, 10, 7]] * 1.5, 1e-6, "embed")


def check_rope_write(
    device: torch.device | str,
    *,
    heads: int = 4,
    kv_heads: int = 2,
    dim: int = 16,
    turned: int | None = None,
    page: int = 4,
    norm: bool = False,
    bias: bool = False,
    quant: int = 0,
    dtype: torch.dtype = torch.float32,
) -> None:
    generator = torch.Generator().manual_seed(5)
    positions = [0, 5, 6, -1, 1000]
    row_seq, blocks = [0, 1, 1, 0, 1], 1000 // page + 1
    table = np.full((2, blocks), -1, np.int32)
    table[0, 0], table[1, 5 // page], table[1, 6 // page], table[1, 1000 // page] = 2, 0, 0, 4
    if 5 // page != 6 // page:
        table[1, 6 // page] = 3
    n = len(positions)
    qkv = oracles.normal(generator, n, (heads + 2 * kv_heads) * dim)
    offsets = oracles.normal(generator, (heads + 2 * kv_heads) * dim)
    q_norm, k_norm = oracles.normal(generator, dim), oracles.normal(generator, dim)
    inverse = RopeSpec(10000.0, turned or dim).inverse_frequencies()
    angle = torch.tensor(positions)[:, None].float() * torch.from_numpy(inverse)
    q_out = oracles.poisoned(n, heads, dim, dtype=dtype, device=device)
    stored = {0: dtype, 1: torch.int8, 2: torch.float8_e4m3fn}[quant]
    pages = [torch.full((6, kv_heads, page, dim), 77.0).to(stored).to(device) for _ in range(2)]
    scales = [oracles.poisoned(6, kv_heads, page, device=device) if quant else None for _ in range(2)]
    launch(
        rope_write_kernel,
        (n, heads + 2 * kv_heads),
        {
            "qkv": qkv.to(device), "bias": offsets.to(device) if bias else None,
            "q_norm": q_norm.to(device) if norm else None, "k_norm": k_norm.to(device) if norm else None,
            "cos_sin": torch.cat((angle.cos(), angle.sin()), 1).to(device),
            "positions": torch.tensor(positions, dtype=torch.int32, device=device),
            "row_seq": torch.tensor(row_seq, dtype=torch.int32, device=device),
            "table": torch.from_numpy(table).to(device), "table_stride": blocks, "q_out": q_out, "k_pages": pages[0],
            "v_pages": pages[1], "k_scales": scales[0], "v_scales": scales[1],
        },
        {
            "HEADS": heads, "KV_HEADS": kv_heads, "D": dim, "HALF": len(inverse), "PAGE": page, "EPS": 1e-6,
            "HAS_BIAS": bias, "HAS_NORM": norm, "QUANT": quant, "BLOCK": power_of_two(dim),
        },
        num_warps=1,
    )  # fmt: skip
    # A card rounds to e4m3, the interpreter cuts off: 1/8 of the value instead of 1/16.
    tolerance = {0: TOLERANCE[dtype], 1: 1.0 / 250, 2: 1.0 / 7}[quant]
    written = np.zeros((6, page), bool)
    for row, position in enumerate(positions):
        if position < 0:
            assert bool(q_out[row].isnan().all())
            continue
        values = (qkv[row] + (offsets if bias else 0)).double().view(-1, dim)
        number, place = int(table[row_seq[row], position // page]), position % page
        written[number, place] = True
        for head, value in enumerate(values):
            if head < heads + kv_heads:
                if norm:
                    weight = q_norm if head < heads else k_norm
                    value = value / math.sqrt(float(value.pow(2).mean()) + 1e-6) * weight
                value = oracles.rotate(value, position, inverse)
            if head < heads:
                close(q_out[row, head], value, 2e-4 if dtype == torch.float32 else TOLERANCE[dtype], "query")
                continue
            kind, kv_head = divmod(head - heads, kv_heads)
            got = pages[kind][number, kv_head, place].float()
            scale = scales[kind]
            if scale is not None:
                got = got * scale[number, kv_head, place]
            close(got, value, max(tolerance, 2e-4), "page")
    untouched = torch.from_numpy(~written)
    for part in pages:
        assert bool((part.float().cpu().transpose(1, 2)[untouched] == torch.tensor(77.0).to(stored).float()).all())


def check_attention(
    device: torch.device | str,
    counts: list[int],
    contexts: list[int],
    *,
    heads: int = 4,
    kv_heads: int = 2,
    dim: int = 16,
    page: int = 4,
    window: int | None = None,
    shared: int = 0,
    split: int = 16,
    dtype: torch.dtype = torch.float32,
    quant: int = 0,
    prefill_rows: int = 64,
    launch_bytes: int = 0,
    padded: bool = False,
    seed: int = 6,
) -> torch.Tensor:
    """Plan, attend and merge; returns the result (for comparing bits of different plans)."""
    case = oracles.attention_case(
        seed, counts, contexts, heads=heads, kv_heads=kv_heads, dim=dim, page=page, window=window, shared=shared,
        dtype=dtype, quant=quant, device=device,
    )  # fmt: skip
    shape = AttentionShape(heads, kv_heads, dim, page, window, split, dim**-0.5, quant)
    planning = PlanShape(
        page, window, split, shape.padded_share, 2 * kv_heads * dim * case.pages.keys.element_size(), key_block(split),
        wide_tile(dim), prefill_rows, launch_bytes, launch_bytes >= 0,
    )  # fmt: skip
    host = plan_step(case.batch, [planning], padded=padded)
    inputs = device_views(host, torch.from_numpy(host.packed()).to(device))
    rows, group = len(inputs.positions), inputs.groups[0]
    partial = None
    if len(group.merged_rows):
        sizes = (rows, heads, group.max_splits)
        partial = oracles.poisoned(*sizes, dim, device=device), oracles.poisoned(*sizes, 2, device=device)
    n = len(case.q)
    q = torch.cat((case.q, oracles.poisoned(rows - n, heads, dim, dtype=case.q.dtype, device=device)))
    out = oracles.poisoned(rows, heads, dim, dtype=case.q.dtype, device=device)
    attend_group(shape, q, case.pages, group, inputs.positions, partial, out)
    want = oracles.attention(case, page, window, shape.scale)
    close(out[:n], want, 4e-3 if quant else TOLERANCE[dtype], "attention")
    return out[:n]


def check_choose(device: torch.device | str, vocab: int = 300, rows: int = 3) -> None:
    """Greedy takes the largest (the lower id of two), and cuts leave exactly the tokens they should."""
    generator = torch.Generator().manual_seed(7)
    logits = oracles.normal(generator, rows, vocab) * 3
    logits[0, [5, 17]] = 50.0

    def chosen(sampling: list[RowSampling]) -> list[int]:
        floats, whole = (torch.from_numpy(part).to(device) for part in pack_sampling(sampling))
        out = torch.full((rows,), -1, dtype=torch.int32, device=device)
        choose(logits.to(device), floats, whole, out, any(row.cuts for row in sampling))
        return out.tolist()

    best = logits.argmax(1).tolist()
    assert best[0] == 5
    assert chosen([RowSampling()] * rows) == best
    assert chosen([RowSampling(temperature=1.0, top_k=1, seed=3)] * rows) == best
    assert chosen([RowSampling(temperature=1.0, top_p=1e-6, seed=3)] * rows) == best
    mixed = [RowSampling(), *[RowSampling(temperature=1.0, top_k=4, seed=9, step=s) for s in range(rows - 1)]]
    got = chosen(mixed)
    assert got[0] == best[0]
    assert all(token in logits[row].topk(4).indices for row, token in enumerate(got) if row)
    assert chosen(mixed) == got  # the same seed and step, the same token
