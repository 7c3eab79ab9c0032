"""What each kernel should give, in plain torch and float64, and random inputs to give it.

No oracle shares code with a kernel, nor with `kernels.reference`: a row at a time, a head at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from kernels.contract import ForwardBatch
from kernels.gpu.attention import Pages
from kernels.gpu.weights import DeviceDense, DeviceGrouped4, DeviceGrouped8, DeviceMatrix

POISON = float("nan")


def normal(generator: torch.Generator, *size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*size, generator=generator).to(dtype)


def poisoned(*size: int, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> torch.Tensor:
    """A buffer in which everything that is not written shows."""
    return torch.full(size, POISON, dtype=dtype, device=device)


def random_matrix(generator: torch.Generator, form: str, rows: int, cols: int, dtype: torch.dtype) -> DeviceMatrix:
    """A matrix of one of the formats: "dense", "4bit" or "8bit", the latter two with fp16 or (…w) fp32 scales."""
    if form == "dense":
        return DeviceDense(normal(generator, rows, cols, dtype=dtype))
    scale_type = torch.float32 if form.endswith("w") else torch.float16
    scales = (torch.rand(rows, cols // 32, generator=generator) * 0.2 + 0.01).to(scale_type)
    if form.startswith("4bit"):
        packed = torch.randint(0, 256, (rows, cols // 32, 16), generator=generator, dtype=torch.uint8)
        minima = -(torch.rand(rows, cols // 32, generator=generator) * 1.5).to(scale_type)
        return DeviceGrouped4(packed, scales, minima)
    quants = torch.randint(-127, 128, (rows, cols // 32, 32), generator=generator, dtype=torch.int8)
    return DeviceGrouped8(quants, scales)


def to(matrix: DeviceMatrix, device: torch.device | str) -> DeviceMatrix:
    return type(matrix)(**{name: part.to(device) for name, part in vars(matrix).items()})


def dense(matrix: DeviceMatrix) -> torch.Tensor:
    """float64 [rows, cols]."""
    if isinstance(matrix, DeviceDense):
        return matrix.values.double().cpu()
    out = torch.empty(matrix.rows, matrix.cols, dtype=torch.float64)
    scales = matrix.scales.double().cpu()
    if isinstance(matrix, DeviceGrouped8):
        return (matrix.quants.double().cpu() * scales[..., None]).reshape(out.shape)
    packed, minima = matrix.packed.cpu(), matrix.minima.double().cpu()
    for i in range(32):
        nibble = (packed[:, :, i % 16] >> (4 * (i // 16))) & 15
        out[:, i::32] = nibble.double() * scales + minima
    return out


@dataclass
class AttentionCase:
    """Filled pages of one layer, a table, and queries."""

    batch: ForwardBatch
    q: torch.Tensor
    pages: Pages
    plain: tuple[torch.Tensor, torch.Tensor]
    """Keys and values of each page, float64 [pages, kv_heads, page_size, D]."""


def attention_case(
    seed: int,
    counts: list[int],
    contexts: list[int],
    *,
    heads: int,
    kv_heads: int,
    dim: int,
    page: int,
    window: int | None = None,
    shared: int = 0,
    dtype: torch.dtype = torch.float32,
    quant: int = 0,
    device: torch.device | str = "cpu",
) -> AttentionCase:
    """Sequences with `counts` new rows ending at `contexts`; the first `shared` positions (whole pages) are common.

    Pages are in random order.  Pages wholly before a window, pages nobody names and the rest of a last page are NaN
    (0 for int8 with NaN scales): reading one shows.
    """
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    blocks = max(-(-context // page) for context in contexts) + 1
    n_pages = len(counts) * blocks + 3
    free = list(rng.permutation(n_pages))
    table = np.full((len(counts), blocks), -1, np.int32)
    common = [free.pop() for _ in range(shared // page)]
    keys, values = (poisoned(n_pages, kv_heads, page, dim, dtype=torch.float64) for _ in range(2))
    for s, (count, context) in enumerate(zip(counts, contexts, strict=True)):
        oldest = 0 if window is None else max(0, context - count - window + 1)
        for block in range(oldest // page, -(-context // page)):
            table[s, block] = common[block] if block < len(common) else free.pop()
            used = min(page, context - block * page)
            for plain in (keys, values):
                fresh = torch.randn(kv_heads, used, dim, generator=generator, dtype=torch.float64)
                old = plain[table[s, block], :, :used]
                plain[table[s, block], :, :used] = torch.where(old.isnan(), fresh, old)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    positions = np.concatenate([np.arange(c - n, c) for n, c in zip(counts, contexts, strict=True)]).astype(np.int32)
    n = len(positions)
    batch = ForwardBatch(
        np.zeros(n, np.int32), positions, starts, np.array(contexts, np.int32), (table,), starts[1:] - 1
    )
    q = torch.randn(n, heads, dim, generator=generator)
    if not quant:
        stored = [plain.to(dtype) for plain in (keys, values)]
        pages = Pages(stored[0].to(device), stored[1].to(device))
        return AttentionCase(batch, q.to(dtype).to(device), pages, (stored[0].double(), stored[1].double()))
    limit = 127.0 if quant == 1 else 448.0
    parts, plains = [], []
    for plain in (keys, values):
        scale = (plain.abs().amax(-1) / limit).float()
        small = (plain / scale[..., None].double()).nan_to_num(0.0)
        stored8 = small.round().to(torch.int8) if quant == 1 else small.float().to(torch.float8_e4m3fn)
        parts.append((stored8.to(device), scale.to(device)))
        plains.append(stored8.float().double() * scale[..., None].double())
    pages = Pages(parts[0][0], parts[1][0], parts[0][1], parts[1][1])
    return AttentionCase(batch, q.to(torch.float16).to(device), pages, (plains[0], plains[1]))


def attention(case: AttentionCase, page: int, window: int | None, scale: float) -> torch.Tensor:
    """float64 [n, heads, D]: one row and head after another, straight from the definition."""
    batch, q = case.batch, case.q.double().cpu()
    n, heads, dim = q.shape
    share = heads // case.plain[0].shape[1]
    out = torch.empty(n, heads, dim, dtype=torch.float64)
    for s in range(len(batch.context_lens)):
        for row in range(int(batch.seq_starts[s]), int(batch.seq_starts[s + 1])):
            p = int(batch.positions[row])
            seen = np.arange(0 if window is None else max(0, p - window + 1), p + 1)
            numbers = torch.from_numpy(batch.block_tables[0][s][seen // page].astype(np.int64))
            offsets = torch.from_numpy(seen % page)
            for head in range(heads):
                k = case.plain[0][numbers, head // share, offsets]
                v = case.plain[1][numbers, head // share, offsets]
                out[row, head] = torch.softmax(k @ q[row, head] * scale, 0) @ v
    return out


def rotate(x: torch.Tensor, position: int, inverse: np.ndarray) -> torch.Tensor:
    """RoPE of one head's float64 [D] by pairs (i, i + half)."""
    out, half = x.clone(), len(inverse)
    for i in range(half):
        cosine, sine = math.cos(position * float(inverse[i])), math.sin(position * float(inverse[i]))
        a, b = float(x[i]), float(x[i + half])
        out[i], out[i + half] = a * cosine - b * sine, b * cosine + a * sine
    return out
