"""A model on the card: one step as a list of kernel starts, read top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch

from kernels.contract import Activation, CacheGroupSpec, ForwardBatch, KernelError, ModelShape, RopeSpec
from kernels.gpu.attention import AttentionShape, Pages, attend, combine, key_block, wide_tile
from kernels.gpu.cache import GpuCache
from kernels.gpu.graphs import StepGraphs
from kernels.gpu.inputs import ROW_BUCKETS, GroupInputs, HostStep, StepInputs, device_views, plan_step
from kernels.gpu.launch import launch, power_of_two
from kernels.gpu.linear import SMALL_ROWS, linear, linear_parts
from kernels.gpu.plan import PlanShape
from kernels.gpu.rowops import add_norm, embed, gate, rope_write_kernel
from kernels.gpu.sampling import RowSampling, choose, pack_sampling
from kernels.gpu.settings import GpuSettings
from kernels.gpu.unfold import room
from kernels.gpu.weights import DeviceDense, DeviceLayer, DeviceMatrix, DeviceWeights

MAX_CHOICES = 1024
"""Rows for which a step may choose tokens."""

Partial = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Choice:
    """Token ids on their way from the card; `ids()` waits for them."""

    host: torch.Tensor
    arrived: torch.cuda.Event | None

    def ids(self) -> np.ndarray:
        """int32 [n]; the only place where the host waits for a sampled step."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.host.numpy()


class GpuModel:
    """`kernels.contract.Model` in Triton kernels.

    Not promised bit for bit: a row's result in a batch of one, of 2 to 16 and of more rows comes from different
    kernels and agrees to rounding (with `GpuSettings.batch_invariant` one row and up to 16 agree exactly), and so do
    a prefill of more than `GpuSettings.prefill_rows` rows and the same rows in short appends.  Attention by itself
    never depends on the batch: see `kernels.gpu.attention`.
    """

    def __init__(self, shape: ModelShape, weights: DeviceWeights, settings: GpuSettings, device: torch.device) -> None:
        self.shape = shape
        self.weights = weights
        self.settings = settings
        self.device = device
        self.last_ids = torch.zeros(MAX_CHOICES, dtype=torch.int32, device=device)
        self._ropes: dict[RopeSpec, torch.Tensor] = {}
        for layer in shape.layers:
            if layer.rope not in self._ropes:
                self._ropes[layer.rope] = torch.from_numpy(layer.rope.inverse_frequencies()).to(device)
        self._graphs: WeakKeyDictionary[GpuCache, StepGraphs] = WeakKeyDictionary()

    # ---- the contract ------------------------------------------------------------------------------------------

    def make_cache(self, groups: tuple[CacheGroupSpec, ...], dtype: str = "float16") -> GpuCache:
        """Pages on the card; dtype is one of `kernels.gpu.cache.STORED`."""
        for group in groups:
            for layer in group.layers:
                if self.shape.layers[layer].window != group.window:
                    raise KernelError(f"Layer {layer} does not have the window of its cache group ({group.window}).")
        return GpuCache(self.shape, groups, dtype, self.device)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: GpuCache) -> np.ndarray:
        """Logits float32 [len(logit_rows), vocab]; waits for them."""
        wanted = len(batch.logit_rows)
        logits = self._run(batch, cache, None, cuts=False)
        return logits[:wanted].cpu().numpy()

    # ---- beyond the contract: tokens chosen on the card ----------------------------------------------------------

    @torch.inference_mode()
    def choose_next(self, batch: ForwardBatch, cache: GpuCache, sampling: Sequence[RowSampling]) -> Choice:
        """As `forward`, then choose a token for each logit row on the card; does not wait.

        A token id of -1 - j in `batch.token_ids` stands for what logit row j of the call before chose, so that steps
        may be started one after another without the host having seen a token.
        """
        if len(sampling) != len(batch.logit_rows) or len(sampling) > MAX_CHOICES:
            raise KernelError(f"One sampling row is needed for each of up to {MAX_CHOICES} rows of logits.")
        ids = self._run(batch, cache, pack_sampling(list(sampling)), cuts=any(row.cuts for row in sampling))
        if self.device.type != "cuda":
            return Choice(ids[: len(sampling)].clone(), None)
        host = torch.empty(len(sampling), dtype=torch.int32, pin_memory=True)
        host.copy_(ids[: len(sampling)], non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        return Choice(host, arrived)

    # ---- one step ----------------------------------------------------------------------------------------------

    def _run(
        self, batch: ForwardBatch, cache: GpuCache, sampling: tuple[np.ndarray, np.ndarray] | None, cuts: bool
    ) -> torch.Tensor:
        n = len(batch.token_ids)
        decode = n == len(batch.context_lens) == len(batch.logit_rows) and n <= ROW_BUCKETS[-1]
        shapes = [self.plan_shape(cache, group) for group in range(len(cache.groups))]
        if self.settings.graphs and self.device.type == "cuda" and decode:
            host = plan_step(batch, shapes, sampling, padded=True)
            if cache not in self._graphs:
                self._graphs[cache] = StepGraphs(self._step_over(ref(cache)), self.device)
            return self._graphs[cache].run(host, cuts)
        host = plan_step(batch, shapes, sampling)
        return self.step(self.send(host), cache, cuts)

    def _step_over(self, cache: ref[GpuCache]) -> Callable[[StepInputs, bool, bool], torch.Tensor]:
        """`step` over a cache that it does not keep alive: the cache's graphs must go when the cache goes."""

        def step(inputs: StepInputs, cuts: bool, dry: bool) -> torch.Tensor:
            living = cache()
            assert living is not None, "the caller of a step holds the cache"
            return self.step(inputs, living, cuts, dry)

        return step

    def plan_shape(self, cache: GpuCache, group: int) -> PlanShape:
        """The numbers that planning needs for one cache group."""
        shape, spec, settings = self.shape, cache.groups[group], self.settings
        per_value = cache.pages[group].element_size() * shape.head_dim + (4 if cache.quant else 0)
        return PlanShape(
            page_size=spec.page_size,
            window=spec.window,
            split=settings.split,
            padded_share=power_of_two(shape.n_heads // shape.n_kv_heads),
            position_bytes=2 * shape.n_kv_heads * per_value,
            step=key_block(settings.split),
            wide=wide_tile(shape.head_dim),
            prefill_rows=settings.prefill_rows,
            launch_bytes=settings.launch_bytes,
            share=settings.share,
        )

    def send(self, host: HostStep) -> StepInputs:
        """The step's arrays on the device, by one copy."""
        return device_views(host, torch.from_numpy(host.packed()).to(self.device))

    def step(self, inputs: StepInputs, cache: GpuCache, cuts: bool = False, dry: bool = False) -> torch.Tensor:
        """Start all kernels of a step; nothing in here waits for the card or looks at a tensor's values.

        Returns logits fp32 [m, vocab], or with `inputs.sampling` the chosen ids int32 [m] (left in `last_ids` unless
        `dry`).
        """
        shape, weights = self.shape, self.weights
        rows = len(inputs.tokens)
        x = self._empty(rows, shape.hidden, torch.float32)
        embed(inputs.tokens, self.last_ids, weights.embed, shape.embed_scale, x)
        angles = {rope: self._angles(inverse, inputs.positions) for rope, inverse in self._ropes.items()}
        partials = [self.partial(group, rows) for group in inputs.groups]
        h = self._empty(rows, shape.hidden)
        added: torch.Tensor | None = None
        post: torch.Tensor | None = None
        for number, layer in enumerate(weights.layers):
            folds = self._unfolded(rows, *layer.qkv)
            add_norm(x, added, post, layer.attn_norm, shape.norm_eps, h, unfolded=folds)
            group = cache.slot[number][0]
            q = self._project(h, folds, layer, number, inputs, cache, angles[shape.layers[number].rope])
            a = self._attend(q, layer, number, inputs.groups[group], inputs.positions, cache, partials[group])
            folds = self._unfolded(rows, *layer.gate_up)
            add_norm(x, a, layer.post_attn_norm, layer.ffn_norm, shape.norm_eps, h, unfolded=folds)
            added, post = self._feed_forward(h, folds, layer), layer.post_ffn_norm
        last = self._empty(len(inputs.logit_rows), shape.hidden)
        folds = self._unfolded(len(last), weights.lm_head)
        add_norm(x, added, post, weights.final_norm, shape.norm_eps, last, inputs.logit_rows, folds)
        logits = self._empty(len(last), shape.vocab, torch.float32)
        linear(last, weights.lm_head, logits, batch_invariant=self.settings.batch_invariant, unfolded=folds)
        if inputs.sampling is None:
            return logits
        ids = torch.empty_like(self.last_ids) if dry else self.last_ids
        choose(logits, *inputs.sampling, ids, cuts)
        return ids

    def _empty(self, rows: int, width: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.empty((rows, width), dtype=dtype or self.settings.compute.torch, device=self.device)

    def _unfolded(self, rows: int, *consumers: DeviceMatrix) -> torch.Tensor | None:
        """A buffer for the unfolded row that grouped GEMVs read, where there is one row and such a consumer."""
        if rows != 1 or self.settings.batch_invariant or all(isinstance(m, DeviceDense) for m in consumers):
            return None
        return room(consumers[0].cols, self.device)

    def _wide_type(self, rows: int) -> torch.dtype:
        """Type of a linear layer's result: fp32 where rows are few, the compute type where bytes count (cuBLAS)."""
        return torch.float32 if rows <= SMALL_ROWS else self.settings.compute.torch

    def _angles(self, inverse: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Cosines, then sines, of each row's angles: fp32 [R, 2 * pairs], once a step for all layers."""
        angle = positions[:, None].to(torch.float32) * inverse[None, :]
        return torch.cat((angle.cos(), angle.sin()), dim=1)

    def partial(self, group: GroupInputs, rows: int) -> Partial | None:
        """Room for the splits' results, shared by the layers of a group (also for rows that are walked)."""
        if not len(group.merged_rows):
            return None
        size = (rows, self.shape.n_heads, group.max_splits)
        values = torch.empty((*size, self.shape.head_dim), dtype=torch.float32, device=self.device)
        return values, torch.empty((*size, 2), dtype=torch.float32, device=self.device)

    def _project(
        self,
        h: torch.Tensor,
        folds: torch.Tensor | None,
        layer: DeviceLayer,
        number: int,
        inputs: StepInputs,
        cache: GpuCache,
        cos_sin: torch.Tensor,
    ) -> torch.Tensor:
        """Queries [R, heads, D], turned; keys and values go into their pages."""
        shape, rows = self.shape, len(h)
        heads = shape.n_heads + 2 * shape.n_kv_heads
        qkv = self._empty(rows, heads * shape.head_dim, self._wide_type(rows))
        linear_parts(h, layer.qkv, qkv, batch_invariant=self.settings.batch_invariant, unfolded=folds)
        q = torch.empty((rows, shape.n_heads, shape.head_dim), dtype=cache.query_dtype, device=self.device)
        pages, spec = cache.layer(number), cache.groups[cache.slot[number][0]]
        table = inputs.groups[cache.slot[number][0]].table
        launch(
            rope_write_kernel,
            (rows, heads),
            {
                "qkv": qkv, "bias": layer.qkv_bias, "q_norm": layer.q_norm, "k_norm": layer.k_norm,
                "cos_sin": cos_sin, "positions": inputs.positions, "row_seq": inputs.row_seq, "table": table,
                "table_stride": table.stride(0), "q_out": q, "k_pages": pages.keys, "v_pages": pages.values,
                "k_scales": pages.key_scales, "v_scales": pages.value_scales,
            },
            {
                "HEADS": shape.n_heads, "KV_HEADS": shape.n_kv_heads, "D": shape.head_dim,
                "HALF": shape.layers[number].rope.dim // 2, "PAGE": spec.page_size, "EPS": float(shape.norm_eps),
                "HAS_BIAS": layer.qkv_bias is not None, "HAS_NORM": shape.qk_norm, "QUANT": cache.quant,
                "BLOCK": power_of_two(shape.head_dim),
            },
            num_warps=1,
        )  # fmt: skip
        return q

    def _attend(
        self,
        q: torch.Tensor,
        layer: DeviceLayer,
        number: int,
        group: GroupInputs,
        positions: torch.Tensor,
        cache: GpuCache,
        partial: Partial | None,
    ) -> torch.Tensor:
        """Attention of one layer and its output projection: [R, hidden]."""
        rows, fixed = len(q), self.attention_shape(number, cache)
        mixed = torch.empty(q.shape, dtype=self.settings.compute.torch, device=self.device)
        folds = None
        if partial is not None and fixed.head_dim >= 32 and power_of_two(fixed.head_dim) == fixed.head_dim:
            folds = self._unfolded(rows, layer.wo)
        attend_group(fixed, q, cache.layer(number), group, positions, partial, mixed, folds)
        out = self._empty(rows, self.shape.hidden, self._wide_type(rows))
        linear(mixed.view(rows, -1), layer.wo, out, batch_invariant=self.settings.batch_invariant, unfolded=folds)
        return out

    def attention_shape(self, number: int, cache: GpuCache) -> AttentionShape:
        """What is fixed for one layer."""
        shape, spec = self.shape, cache.groups[cache.slot[number][0]]
        return AttentionShape(
            heads=shape.n_heads,
            kv_heads=shape.n_kv_heads,
            head_dim=shape.head_dim,
            page_size=spec.page_size,
            window=spec.window,
            split=self.settings.split,
            scale=shape.attn_scale,
            quant=cache.quant,
        )

    def _feed_forward(self, h: torch.Tensor, folds: torch.Tensor | None, layer: DeviceLayer) -> torch.Tensor:
        """down(act(gate) * up): [R, hidden]."""
        rows, shape, steady = len(h), self.shape, self.settings.batch_invariant
        pair = self._empty(rows, 2 * shape.ffn, self._wide_type(rows))
        linear_parts(h, layer.gate_up, pair, batch_invariant=steady, unfolded=folds)
        gated = self._empty(rows, shape.ffn)
        folds = self._unfolded(rows, layer.w_down)
        gate(pair, shape.activation is Activation.GELU_TANH, gated, folds)
        out = self._empty(rows, shape.hidden, self._wide_type(rows))
        linear(gated, layer.w_down, out, batch_invariant=steady, unfolded=folds)
        return out


def attend_group(
    shape: AttentionShape,
    q: torch.Tensor,
    pages: Pages,
    group: GroupInputs,
    positions: torch.Tensor,
    partial: Partial | None,
    out: torch.Tensor,
    unfolded: torch.Tensor | None = None,
) -> None:
    """All items of one layer and the merge of the split ones, into out [R, heads, D] (and `unfolded`, one row)."""
    if partial is not None:
        attend(shape, q, pages, group.table, positions, group.narrow, partial=partial)
        attend(shape, q, pages, group.table, positions, group.wide, partial=partial)
        combine(shape, partial, positions, group.merged_rows, out, unfolded)
    attend(shape, q, pages, group.table, positions, group.walk, out=out)
