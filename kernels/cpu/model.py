"""A model on the CPU: packed weights, working buffers, and one compiled call a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.contract import Activation, CacheGroupSpec, ForwardBatch, KernelError, ModelShape, RopeSpec
from kernels.cpu import context as c
from kernels.cpu import phases, plan
from kernels.cpu.attend import WIDTH
from kernels.cpu.cache import CpuCache
from kernels.cpu.gemm import TILE
from kernels.cpu.jit import Library
from kernels.cpu.pack import PackedMatrix
from kernels.cpu.team import PHASE_SLOTS, Team

SPLIT_ROWS = 8
"""Sequences with more new rows than this attend in strips."""
STRIP_VECTORS = 24
"""Query vectors of a strip, about."""
MATRIX_NAMES = ("wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down")
_VECTOR_SLOTS = ((c.ATTN_NORM, "attn_norm"), (c.FFN_NORM, "ffn_norm"), (c.POST_ATTN, "post_attn_norm"),
                 (c.POST_FFN, "post_ffn_norm"), (c.Q_NORM, "q_norm"), (c.K_NORM, "k_norm"))
_EMBED, _ROWS, _TOP, _QKV, _OUT, _GATE, _DOWN, _HEAD, _ATTEND = range(9)
"""What decides a phase's number of items; `_ATTEND` + cache group comes last."""


@dataclass(frozen=True)
class PackedLayer:
    """One layer's matrices in the order of `MATRIX_NAMES`, and its vectors by their names in `LayerWeights`."""

    matrices: tuple[PackedMatrix, ...]
    vectors: dict[str, np.ndarray]


def _padded(rows: int) -> int:
    return -(-rows // TILE) * TILE


class CpuModel:
    """See `kernels.contract.Model`.  Results are equal bit for bit however the work is batched or cut."""

    def __init__(self, shape: ModelShape, embed: PackedMatrix, head: PackedMatrix, layers: tuple[PackedLayer, ...],
                 final_norm: np.ndarray, library: Library, threads: int) -> None:
        self.shape = shape
        self.threads = threads
        self.share_reads = True
        """False reads pages once for every sequence, shared or not (for comparison)."""
        self._library = library
        self._layers, self._embed, self._head = layers, embed, head
        self._keep: list[np.ndarray] = []
        self._team = Team(threads, library.get(("run",)))
        self._build_plan = library.get(("plan",))
        self._context = np.zeros(c.CONTEXT_SLOTS, np.int64)
        self._table = np.zeros((shape.n_layers + 2, c.LAYER_SLOTS), np.int64)
        self._rope: dict[RopeSpec, np.ndarray] = {}
        self._rope_length = 0
        self._cache: CpuCache | None = None
        self._buffers: dict[int, np.ndarray] = {}
        self._capacity = self._logit_capacity = self._part_capacity = 0
        self._vectors = shape.n_heads // shape.n_kv_heads * max(1, STRIP_VECTORS * shape.n_kv_heads // shape.n_heads)
        widest = max(m.cols for layer in layers for m in layer.matrices)
        self._row_block = max(32, min(256, (1 << 20) // widest // 8 * 8))
        self._describe(final_norm)

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step with logits reads (the embedding's few rows apart)."""
        return sum(m.data.nbytes for layer in self._layers for m in layer.matrices) + self._head.data.nbytes

    # -- tables ---------------------------------------------------------------------------------------------------

    def _address(self, array: np.ndarray | None) -> int:
        if array is None:
            return 0
        array = np.ascontiguousarray(array, np.float32)
        self._keep.append(array)
        return int(array.ctypes.data)

    def _matrix_record(self, matrix: PackedMatrix) -> tuple[int, ...]:
        kernel = self._library.address("tile", int(matrix.format))
        return matrix.data.ctypes.data, kernel, matrix.groups, matrix.tile_bytes, matrix.tiles

    def _describe(self, final_norm: np.ndarray) -> None:
        shape, ctx = self.shape, self._context
        q_width = _padded(shape.n_heads * shape.head_dim)
        kv_width = _padded(shape.n_kv_heads * shape.head_dim)
        ctx[c.HIDDEN], ctx[c.FFN], ctx[c.N_LAYERS] = shape.hidden, shape.ffn, shape.n_layers
        ctx[c.N_HEADS], ctx[c.N_KV], ctx[c.HEAD_DIM] = shape.n_heads, shape.n_kv_heads, shape.head_dim
        ctx[c.Q_WIDTH], ctx[c.KV_WIDTH], ctx[c.QKV_WIDTH] = q_width, kv_width, q_width + 2 * kv_width
        ctx[c.VOCAB_WIDTH], ctx[c.PROJ_WIDTH] = _padded(shape.vocab), _padded(shape.hidden)
        ctx[c.ACTIVATION] = 0 if shape.activation is Activation.SILU else 1
        ctx[c.ROW_BLOCK] = self._row_block
        ctx[c.HEAD_TERMS] = 2 if self._head.format.integer else 1
        ctx[c.LAYERS] = self._table.ctypes.data
        ctx[c.FLOATS] = self._address(np.array([shape.norm_eps, shape.attn_scale, shape.embed_scale], np.float32))
        for number, layer in enumerate(self._layers):
            row, v = self._table[number], layer.vectors
            for slot, name in _VECTOR_SLOTS:
                row[slot] = self._address(v.get(name))
            if "bq" in v:
                bias = np.zeros(q_width + 2 * kv_width, np.float32)
                for start, part in ((0, v["bq"]), (q_width, v["bk"]), (q_width + kv_width, v["bv"])):
                    bias[start : start + len(part)] = part
                row[c.BIAS] = self._address(bias)
            for i, matrix in enumerate(layer.matrices):
                at = c.MATRICES + i * c.MATRIX_SLOTS
                row[at : at + c.MATRIX_SLOTS] = self._matrix_record(matrix)
            row[c.ROPE_HALF] = shape.layers[number].rope.dim // 2
        top = self._table[shape.n_layers]
        top[c.ATTN_NORM] = self._address(final_norm)
        top[c.MATRICES : c.MATRICES + c.MATRIX_SLOTS] = self._matrix_record(self._head)
        embed = self._table[shape.n_layers + 1]
        embed[c.EMBED_DATA], embed[c.EMBED_FORMAT] = self._embed.data.ctypes.data, int(self._embed.format)
        embed[c.EMBED_GROUPS], embed[c.EMBED_TILE_BYTES] = self._embed.groups, self._embed.tile_bytes

    def _make_program(self, cache: CpuCache) -> None:
        """The list of phases; only the numbers of items change from step to step."""
        address = self._library.address
        group_of = {layer: g for g, spec in enumerate(cache.groups) for layer in spec.layers}
        rows: list[tuple[int, int, int]] = [(address("phase", "embed"), 0, 0)]
        kinds = [_EMBED]

        def add(kind: int, phase: str, layer: int, which: int = 0) -> None:
            rows.append((address("phase", phase), layer, which))
            kinds.append(kind)

        for layer in range(self.shape.n_layers):
            add(_ROWS, "enter", layer, phases.BEFORE_ATTENTION)
            add(_QKV, "linear", layer, phases.QKV)
            add(_ROWS, "position", layer)
            add(_ATTEND + group_of[layer], "attend", layer, self._vectors)
            add(_ROWS, "gather", layer)
            add(_OUT, "linear", layer, phases.OUT)
            add(_ROWS, "enter", layer, phases.BEFORE_FFN)
            add(_GATE, "gate", layer)
            add(_DOWN, "linear", layer, phases.DOWN)
        add(_TOP, "enter", self.shape.n_layers, phases.TOP)
        add(_HEAD, "head", self.shape.n_layers)
        self._program = np.zeros((len(rows), PHASE_SLOTS), np.int64)
        self._program[:, :3] = rows
        self._kinds = np.array(kinds)

    # -- cache ----------------------------------------------------------------------------------------------------

    def make_cache(self, groups: tuple[CacheGroupSpec, ...], dtype: str = "float16") -> CpuCache:
        covered = sorted(layer for spec in groups for layer in spec.layers)
        if covered != list(range(self.shape.n_layers)):
            raise KernelError("The cache groups must cover every layer exactly once.")
        return CpuCache(self.shape, groups, dtype)

    def _use_cache(self, cache: CpuCache) -> None:
        if cache is self._cache:
            return
        self._cache = cache
        ctx = self._context
        ctx[c.STORE] = int(cache.store)
        ctx[c.SCORES_KERNEL] = self._library.address("scores", int(cache.store))
        ctx[c.VALUES_KERNEL] = self._library.address("values", int(cache.store))
        for g, spec in enumerate(cache.groups):
            for i, layer in enumerate(spec.layers):
                row = self._table[layer]
                row[c.GROUP] = g
                row[c.KEYS], row[c.VALUES] = cache.keys[g][i].ctypes.data, cache.values[g][i].ctypes.data
                if cache.key_scales:
                    row[c.KEY_SCALES] = cache.key_scales[g][i].ctypes.data
                    row[c.VALUE_SCALES] = cache.value_scales[g][i].ctypes.data
        self._plans = np.zeros((len(cache.groups), c.PLAN_SLOTS), np.int64)
        ctx[c.PLANS] = self._plans.ctypes.data
        self._slots = max(plan.chunk_slots(spec.page_size) for spec in cache.groups)
        self._scratch_for_cache()
        self._plan_arrays: list[tuple[np.ndarray, ...]] = [() for _ in cache.groups]
        self._make_program(cache)

    def _scratch_for_cache(self) -> None:
        most, d = self._vectors, self.shape.head_dim
        attention = 4 * most * (3 * d + self._slots) + 32 * most
        size = (max(attention, 256 * self._row_block, 4 * d + 64) // 4096 + 1) * 4096
        self._set_buffer(c.SCRATCH, size * self.threads)
        self._context[c.SCRATCH_BYTES] = size

    # -- buffers --------------------------------------------------------------------------------------------------

    def _set_buffer(self, slot: int, nbytes: int) -> np.ndarray:
        raw = np.zeros(nbytes + 64, np.uint8)
        start = -raw.ctypes.data % 64
        self._buffers[slot] = raw[start : start + nbytes]
        self._context[slot] = self._buffers[slot].ctypes.data
        return self._buffers[slot]

    def _reserve(self, n: int, m: int) -> None:
        shape, ctx = self.shape, self._context
        if n > self._capacity:
            n = self._capacity = max(n, 2 * self._capacity, 16)
            attention = shape.n_heads * shape.head_dim
            for slot, width in ((c.X, shape.hidden), (c.PROJ, int(ctx[c.PROJ_WIDTH])), (c.QKV, int(ctx[c.QKV_WIDTH]))):
                self._set_buffer(slot, 4 * n * width)
            for slot, width in ((c.H, shape.hidden), (c.ATT, attention), (c.ACT, shape.ffn)):
                self._set_buffer(slot, 4 * n * width)
                # Two terms a row at the top.
                self._set_buffer(slot + 1, 2 * n * width)
                self._set_buffer(slot + 2, 24 * n * (width // 32))
        if m > self._logit_capacity:
            self._logit_capacity = m
            self._set_buffer(c.LOGITS, 4 * m * int(ctx[c.VOCAB_WIDTH]))

    def _reserve_rope(self, positions: int) -> None:
        if positions <= self._rope_length:
            return
        self._rope_length = length = max(positions, 2 * self._rope_length, 1024)
        self._rope = {}
        for number, layer in enumerate(self.shape.layers):
            if layer.rope not in self._rope:
                angles = np.arange(length, dtype=np.float32)[:, None] * layer.rope.inverse_frequencies()
                both = np.stack([np.cos(angles), np.sin(angles)], axis=1)
                self._rope[layer.rope] = np.ascontiguousarray(both, np.float32)
            self._table[number, c.ROPE] = self._rope[layer.rope].ctypes.data

    # -- a step ---------------------------------------------------------------------------------------------------

    def forward(self, batch: ForwardBatch, cache: CpuCache) -> np.ndarray:
        self._use_cache(cache)
        ctx = self._context
        arrays = [np.ascontiguousarray(a, np.int32) for a in (batch.token_ids, batch.positions, batch.seq_starts,
                                                              batch.logit_rows)]
        tokens, positions, starts, logit_rows = arrays
        n, m = len(tokens), len(logit_rows)
        if n == 0:
            return np.zeros((0, self.shape.vocab), np.float32)
        longest = int(positions.max()) + 1
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.shape.vocab:
            raise KernelError("A token id lies outside the vocabulary.")
        self._reserve(n, m)
        self._reserve_rope(longest)
        sequences = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        ctx[c.N_ROWS], ctx[c.N_LOGITS] = n, m
        ctx[c.TOKENS], ctx[c.POSITIONS] = tokens.ctypes.data, positions.ctypes.data
        ctx[c.ROW_SEQ], ctx[c.LOGIT_ROWS] = sequences.ctypes.data, logit_rows.ctypes.data
        items = self._items(n, m)
        tables = []
        for g in range(len(cache.groups)):
            table = np.ascontiguousarray(batch.block_tables[g], np.int32)
            tables.append(table)
            items.append(self._plan(g, cache.groups[g], starts, positions, table, longest) * self.shape.n_kv_heads)
        counts = np.array(items)[self._kinds]
        self._program[:, 3] = counts
        self._program[:, 4] = np.maximum(1, counts // (self.threads * 4))
        self._team.run(self._program, ctx)
        logits = self._buffers[c.LOGITS].view(np.float32) if m else np.zeros(0, np.float32)
        width = int(ctx[c.VOCAB_WIDTH])
        return logits[: m * width].reshape(m, width)[:, : self.shape.vocab]

    def _items(self, n: int, m: int) -> list[int]:
        """Number of items by kind, without attention."""
        blocks = -(-n // self._row_block)
        matrices = self._layers[0].matrices
        qkv = sum(matrix.tiles for matrix in matrices[:3])
        return [n, n, m, qkv * blocks, matrices[3].tiles * blocks, self.shape.ffn // 32 * blocks,
                matrices[6].tiles * blocks, self._head.tiles * -(-m // (self._row_block // 2))]

    def _plan(self, g: int, spec: CacheGroupSpec, starts: np.ndarray, positions: np.ndarray, table: np.ndarray,
              longest: int) -> int:
        """Divide the attention of one cache group; returns the number of sets and strips."""
        n, n_seq = len(positions), len(starts) - 1
        if (longest - 1) // spec.page_size >= table.shape[1] or int(table.max()) >= spec.n_pages:
            raise KernelError("A block table does not reach the last position, or names a page that does not exist.")
        length = plan.chunk_length(spec.page_size)
        chunks = longest // length + 1
        sets = np.empty((n_seq * chunks, 4), np.int32)
        set_rows = np.empty(min(n, n_seq * SPLIT_ROWS) * chunks, np.int32)
        strips = np.empty((n, 2), np.int32)
        per_row = np.empty((3, n), np.int32)
        share = self.shape.n_heads // self.shape.n_kv_heads
        n_sets, n_strips, n_parts = self._build_plan(  # type: ignore[operator]
            starts, positions, table, spec.page_size, spec.window or 0, length, SPLIT_ROWS, self._vectors // share,
            self.share_reads, sets, set_rows, strips, per_row[0], per_row[1], per_row[2],
        )
        if n_parts > self._part_capacity:
            self._part_capacity = max(n_parts, 2 * self._part_capacity)
            self._set_buffer(c.PARTS, 4 * self._part_capacity * self.shape.n_heads * (self.shape.head_dim + 16))
        row = self._plans[g]
        row[c.P_TABLE], row[c.P_BLOCKS] = table.ctypes.data, table.shape[1]
        row[c.P_PAGE], row[c.P_PAGE_BLOCKS] = spec.page_size, -(-spec.page_size // WIDTH)
        row[c.P_WINDOW], row[c.P_CHUNK], row[c.P_SLOTS] = spec.window or 0, length, plan.chunk_slots(spec.page_size)
        row[c.P_SETS], row[c.P_N_SETS], row[c.P_SET_ROWS] = sets.ctypes.data, n_sets, set_rows.ctypes.data
        row[c.P_STRIPS], row[c.P_N_STRIPS] = strips.ctypes.data, n_strips
        row[c.P_PART_BASE], row[c.P_FIRST_CHUNK], row[c.P_LAST_CHUNK] = (a.ctypes.data for a in per_row)
        self._plan_arrays[g] = (table, sets, set_rows, strips, per_row)
        return n_sets + n_strips
