"""The plain torch back end: every other back end is measured against it.

`BACKEND` multiplies whole batches and is what one compares logits with.  `EXACT` computes each row by itself, so that
a row's bits depend on its sequence's tokens only: however the work is batched, chunked or cached, the result is the
same bit for bit.  It is slow and meant for small models and for the fuzz test's oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernels.contract import Activation, CacheGroupSpec, ForwardBatch, KernelError, ModelShape
from kernels.weights import ModelWeights, WeightTensor

_DTYPES = {"float32": torch.float32, "float16": torch.float16}


class ReferenceCache:
    """Pages as one tensor a group and kind: [layers, pages, page_size, n_kv_heads, head_dim]."""

    def __init__(self, shape: ModelShape, groups: tuple[CacheGroupSpec, ...], dtype: str) -> None:
        if dtype not in _DTYPES:
            raise KernelError(f"The reference back end keeps float32 or float16 pages, not {dtype}.")
        self.groups = groups
        self.dtype = dtype
        self.slot = {layer: (g, i) for g, spec in enumerate(groups) for i, layer in enumerate(spec.layers)}
        self.pages = [
            torch.zeros(
                (2, len(spec.layers), spec.n_pages, spec.page_size, shape.n_kv_heads, shape.head_dim),
                dtype=_DTYPES[dtype],
            )
            for spec in groups
        ]

    @property
    def nbytes(self) -> int:
        return sum(pages.numel() * pages.element_size() for pages in self.pages)

    def copy_positions(self, group: int, src_page: int, dst_page: int, n: int) -> None:
        pages = self.pages[group]
        pages[:, :, dst_page, :n] = pages[:, :, src_page, :n]

    def export_page(self, group: int, page: int, n: int) -> tuple[np.ndarray, ...]:
        both = self.pages[group][:, :, page, :n].clone().numpy()
        return both[0], both[1]

    def import_page(self, group: int, page: int, arrays: tuple[np.ndarray, ...]) -> None:
        for kind, array in enumerate(arrays):
            self.pages[group][kind, :, page, : array.shape[1]] = torch.from_numpy(np.ascontiguousarray(array))


def _tensor(weight: WeightTensor | np.ndarray) -> torch.Tensor:
    array = weight.dequantize() if isinstance(weight, WeightTensor) else np.array(weight, dtype=np.float32)
    return torch.from_numpy(array)


class ReferenceModel:
    """Weights as float32 tensors; `exact` chooses row-by-row arithmetic."""

    def __init__(self, shape: ModelShape, weights: ModelWeights, exact: bool) -> None:
        self.shape = shape
        self.exact = exact
        self.embed = _tensor(weights.embed)
        self.head = self.embed if weights.lm_head is None else _tensor(weights.lm_head)
        self.final_norm = _tensor(weights.final_norm)
        self.layers: list[dict[str, torch.Tensor]] = [
            {name: _tensor(value) for name, value in vars(layer).items() if value is not None}
            for layer in weights.layers
        ]
        self.inverse = [torch.from_numpy(layer.rope.inverse_frequencies()) for layer in shape.layers]

    def make_cache(self, groups: tuple[CacheGroupSpec, ...], dtype: str = "float16") -> ReferenceCache:
        return ReferenceCache(self.shape, groups, dtype)

    # ---- arithmetic -------------------------------------------------------------------------------------------

    def linear(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """x [n, in] times weight [out, in], transposed: [n, out]."""
        if not self.exact:
            return x @ weight.T
        # A copied row is a fresh allocation: equal alignment, hence the same code path in the library every time.
        return torch.stack([torch.mv(weight, row.clone()) for row in x])

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMS norm over the last axis."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.shape.norm_eps) * weight

    def rotate(self, x: torch.Tensor, positions: torch.Tensor, layer: int) -> torch.Tensor:
        """RoPE on x [n, heads, head_dim], halves paired."""
        inverse = self.inverse[layer]
        half = len(inverse)
        angles = positions.to(torch.float32)[:, None, None] * inverse
        cos, sin = angles.cos(), angles.sin()
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)

    def activate(self, x: torch.Tensor) -> torch.Tensor:
        if self.shape.activation is Activation.SILU:
            return torch.nn.functional.silu(x)
        return torch.nn.functional.gelu(x, approximate="tanh")

    # ---- one step ---------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: ReferenceCache) -> np.ndarray:
        if not self.exact:
            return self._forward(batch, cache)
        # Vector and scalar code of one function may round differently, and which of them an element meets depends on
        # its place in the tensor: only equal shapes give equal bits, so every row is a batch of its own.
        logits = [self._forward(row, cache) for row in _rows(batch)]
        return np.concatenate(logits) if logits else np.zeros((0, self.shape.vocab), np.float32)

    def _forward(self, batch: ForwardBatch, cache: ReferenceCache) -> np.ndarray:
        shape = self.shape
        positions = torch.from_numpy(batch.positions.astype(np.int64))
        x = self.embed[torch.from_numpy(batch.token_ids.astype(np.int64))] * shape.embed_scale
        for number, layer in enumerate(self.layers):
            h = self.norm(x, layer["attn_norm"])
            q, k, v = (self.linear(h, layer[name]) for name in ("wq", "wk", "wv"))
            if shape.qkv_bias:
                q, k, v = q + layer["bq"], k + layer["bk"], v + layer["bv"]
            q = q.view(-1, shape.n_heads, shape.head_dim)
            k = k.view(-1, shape.n_kv_heads, shape.head_dim)
            v = v.view(-1, shape.n_kv_heads, shape.head_dim)
            if shape.qk_norm:
                q, k = self.norm(q, layer["q_norm"]), self.norm(k, layer["k_norm"])
            q, k = self.rotate(q, positions, number), self.rotate(k, positions, number)
            self._write(batch, cache, number, k, v)
            a = self.linear(self._attend(batch, cache, number, q), layer["wo"])
            x = x + (self.norm(a, layer["post_attn_norm"]) if shape.post_norms else a)
            h = self.norm(x, layer["ffn_norm"])
            gated = self.activate(self.linear(h, layer["w_gate"])) * self.linear(h, layer["w_up"])
            f = self.linear(gated, layer["w_down"])
            x = x + (self.norm(f, layer["post_ffn_norm"]) if shape.post_norms else f)
        if len(batch.logit_rows) == 0:
            return np.zeros((0, shape.vocab), np.float32)
        last = self.norm(x[torch.from_numpy(batch.logit_rows.astype(np.int64))], self.final_norm)
        return self.linear(last, self.head).numpy()

    def _write(self, batch: ForwardBatch, cache: ReferenceCache, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        group, index = cache.slot[layer]
        size = cache.groups[group].page_size
        for s in range(len(batch.context_lens)):
            rows = slice(int(batch.seq_starts[s]), int(batch.seq_starts[s + 1]))
            slots = batch.positions[rows]
            pages = torch.from_numpy(batch.block_tables[group][s][slots // size].astype(np.int64))
            offsets = torch.from_numpy((slots % size).astype(np.int64))
            cache.pages[group][0, index, pages, offsets] = k[rows].to(cache.pages[group].dtype)
            cache.pages[group][1, index, pages, offsets] = v[rows].to(cache.pages[group].dtype)

    def _attend(self, batch: ForwardBatch, cache: ReferenceCache, layer: int, q: torch.Tensor) -> torch.Tensor:
        group, index = cache.slot[layer]
        size, window = cache.groups[group].page_size, self.shape.layers[layer].window
        out = torch.empty((len(q), self.shape.n_heads * self.shape.head_dim))
        for s in range(len(batch.context_lens)):
            rows = range(int(batch.seq_starts[s]), int(batch.seq_starts[s + 1]))
            end = int(batch.context_lens[s])
            first_query = int(batch.positions[rows.start])
            start = 0 if window is None else max(0, first_query - window + 1)
            numbers = batch.block_tables[group][s][start // size : (end - 1) // size + 1]
            table = torch.from_numpy(numbers.astype(np.int64))
            base = start // size * size
            kv = cache.pages[group][:, index, table].flatten(1, 2)[:, : end - base].to(torch.float32)
            keys = np.arange(base, end)
            if self.exact:
                for row in rows:
                    p = int(batch.positions[row])
                    low = 0 if window is None else max(0, p - window + 1)
                    out[row] = self._attend_row(q[row], kv[:, low - base : p - base + 1])
            else:
                at = batch.positions[rows.start : rows.stop, None]
                seen = (keys[None] <= at) & (keys[None] > (at - window if window is not None else -1))
                block = self._attend_block(q[rows.start : rows.stop], kv, torch.from_numpy(seen))
                out[rows.start : rows.stop] = block
        return out

    def _attend_block(self, q: torch.Tensor, kv: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """q [n, heads, d], kv [2, keys, kv_heads, d], seen [n, keys] -> [n, heads * d]."""
        share = self.shape.n_heads // self.shape.n_kv_heads
        k, v = (t.repeat_interleave(share, dim=1) for t in kv)
        scores = torch.einsum("nhd,khd->hnk", q, k) * self.shape.attn_scale
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        return torch.einsum("hnk,khd->nhd", weights, v).flatten(1)

    def _attend_row(self, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        """q [heads, d], kv [2, keys seen, kv_heads, d] -> [heads * d]; equal bits for equal inputs."""
        share = self.shape.n_heads // self.shape.n_kv_heads
        heads = []
        for head in range(self.shape.n_heads):
            k = kv[0, :, head // share].clone()
            v = kv[1, :, head // share].T.clone()
            weights = (torch.mv(k, q[head].clone()) * self.shape.attn_scale).softmax(-1)
            heads.append(torch.mv(v, weights))
        return torch.cat(heads)


def _rows(batch: ForwardBatch) -> Iterator[ForwardBatch]:
    """Each row as a batch, in order: a row comes after all it can see."""
    wanted = set(batch.logit_rows.tolist())
    for s in range(len(batch.context_lens)):
        for row in range(int(batch.seq_starts[s]), int(batch.seq_starts[s + 1])):
            yield ForwardBatch(
                token_ids=batch.token_ids[row : row + 1],
                positions=batch.positions[row : row + 1],
                seq_starts=np.array([0, 1], np.int32),
                context_lens=batch.positions[row : row + 1] + 1,
                block_tables=tuple(table[s : s + 1] for table in batch.block_tables),
                logit_rows=np.zeros(int(row in wanted), np.int32),
            )


@dataclass(frozen=True)
class ReferenceBackend:
    """See the module docstring for `exact`."""

    name: str
    exact: bool

    def load(self, shape: ModelShape, weights: ModelWeights, *, threads: int = 1, **_: Any) -> ReferenceModel:
        torch.set_num_threads(threads)
        return ReferenceModel(shape, weights, self.exact)


BACKEND = ReferenceBackend("reference", exact=False)
EXACT = ReferenceBackend("reference-exact", exact=True)
