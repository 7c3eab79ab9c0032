"""What is compared: our kernels, llama.cpp and transformers behind one small protocol.

Every side holds sequences by number.  `forward` takes (sequence, tokens, start) triples and returns the logits of each
one's last token, so that the same loop times all of them.  Only the call itself is timed: nothing is copied.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from assistant.errors import CrosstalkError

Piece = tuple[int, list[int], int]
PAGE = 32


class BenchUnavailable(CrosstalkError):
    """Something to compare with is not installed."""


@dataclass(frozen=True)
class Timing:
    """One call: seconds that passed, and seconds of processor that this process used (all its threads together).

    On a machine with other work the second is the steadier measure of a single thread.
    """

    wall: float
    processor: float


def timed(call: Callable[[], Any]) -> tuple[Timing, Any]:
    """Run and time a call."""
    processor, wall = time.process_time(), time.perf_counter()
    result = call()
    return Timing(time.perf_counter() - wall, time.process_time() - processor), result


def medians(samples: Sequence[Timing]) -> Timing:
    """The median of each measure."""
    return Timing(statistics.median(s.wall for s in samples), statistics.median(s.processor for s in samples))


class Side(Protocol):
    """One implementation under measurement."""

    name: str

    def forward(self, pieces: list[Piece]) -> np.ndarray:
        """Run one step; logits [len(pieces), vocab], valid until the next call."""
        ...

    def share(self, source: int, target: int, n: int) -> None:
        """Let `target` begin with the first `n` positions of `source`."""
        ...

    def trim(self, sequence: int, n: int) -> None:
        """Forget positions from `n` on."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...


class OurSide:
    """A back end of `kernels`, driven through its contract without the engine's scheduler."""

    def __init__(self, model_file: Any, device: str, threads: int, positions: int, n_seq: int = 8,
                 dtype: str = "float16") -> None:
        import kernels
        from kernels.contract import CacheGroupSpec

        self.name = "crosstalk"
        shape = model_file.shape
        self.model: Any = kernels.pick(device).load(shape, model_file.weights, threads=threads)
        by_window: dict[int | None, list[int]] = {}
        for number, layer in enumerate(shape.layers):
            by_window.setdefault(layer.window, []).append(number)
        self._pages = -(-positions // PAGE) + 4 * n_seq
        self.groups = tuple(
            CacheGroupSpec(tuple(layers), self._pages, PAGE, window) for window, layers in by_window.items()
        )
        self.cache = self.model.make_cache(self.groups, dtype)
        self.clear()

    def clear(self) -> None:
        self._free = list(range(self._pages))[::-1]
        self.tables: dict[int, list[int]] = {}
        self._own: dict[int, list[int]] = {}

    def page(self, sequence: int) -> int:
        """A page that nothing else uses."""
        if not self._free:
            raise CrosstalkError("the benchmark ran out of pages: ask for fewer positions")
        page = self._free.pop()
        self._own.setdefault(sequence, []).append(page)
        return page

    def trim(self, sequence: int, n: int) -> None:
        # Otherwise pages after the cut stay with the sequence and are written again.
        if n == 0:
            self.tables.pop(sequence, None)
            self._free += self._own.pop(sequence, [])

    def share(self, source: int, target: int, n: int) -> None:
        whole, rest = divmod(n, PAGE)
        table = self.tables[source][:whole]
        if rest:
            table.append(self.page(target))
            for group in range(len(self.groups)):
                self.cache.copy_positions(group, self.tables[source][whole], table[-1], rest)
        self.tables[target] = table

    def batch(self, pieces: list[Piece], every_row: bool = False) -> Any:
        """The contract's batch for some pieces; pages are added to sequences as needed."""
        from kernels.contract import ABSENT, ForwardBatch

        starts = np.cumsum([0] + [len(tokens) for _, tokens, _ in pieces]).astype(np.int32)
        for sequence, tokens, start in pieces:
            table = self.tables.setdefault(sequence, [])
            while len(table) * PAGE < start + len(tokens):
                table.append(self.page(sequence))
        block = np.full((len(pieces), max(len(self.tables[s]) for s, _, _ in pieces)), ABSENT, np.int32)
        for row, (sequence, _, _) in enumerate(pieces):
            block[row, : len(self.tables[sequence])] = self.tables[sequence]
        return ForwardBatch(
            token_ids=np.array([t for _, tokens, _ in pieces for t in tokens], np.int32),
            positions=np.concatenate([np.arange(s, s + len(t)) for _, t, s in pieces]).astype(np.int32),
            seq_starts=starts,
            context_lens=np.array([s + len(t) for _, t, s in pieces], np.int32),
            block_tables=tuple(block for _ in self.groups),
            logit_rows=np.arange(starts[-1], dtype=np.int32) if every_row else starts[1:] - 1,
        )

    def forward(self, pieces: list[Piece]) -> np.ndarray:
        return self.model.forward(self.batch(pieces), self.cache)

    def all_logits(self, tokens: list[int]) -> np.ndarray:
        """float32 [tokens, vocab], a copy."""
        self.clear()
        return self.model.forward(self.batch([(0, tokens, 0)], every_row=True), self.cache).copy()


class LlamaSide:
    """llama.cpp through its own batch API, as llama-cpp-python exposes it."""

    def __init__(self, path: Path, threads: int, positions: int, *, flash: bool, n_seq: int = 8,
                 unified: bool = True) -> None:
        try:
            import llama_cpp
        except ImportError as error:
            raise BenchUnavailable(
                "llama.cpp is not installed: pip install 'crosstalk-assistant[bench]'"
            ) from error
        self.lib: Any = llama_cpp
        self.name = f"llama.cpp{' flash' if flash else ''}{'' if unified else ' split'}"
        lib = self.lib
        lib.llama_backend_init()
        _be_quiet(lib)
        self._model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.kv_unified = positions, n_seq, unified
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        kinds = (lib.LLAMA_FLASH_ATTN_TYPE_DISABLED, lib.LLAMA_FLASH_ATTN_TYPE_ENABLED)
        params.flash_attn_type = kinds[flash]
        params.no_perf = True
        self._context = lib.llama_init_from_model(self._model, params)
        if not self._context:
            raise CrosstalkError("llama.cpp could not make a context: ask for fewer positions")
        self._memory = lib.llama_get_memory(self._context)
        self._vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model))
        self._batch = lib.llama_batch_init(512, 0, 1)

    def close(self) -> None:
        """Free the context and the model."""
        self.lib.llama_batch_free(self._batch)
        self.lib.llama_free(self._context)
        self.lib.llama_model_free(self._model)

    def clear(self) -> None:
        self.lib.llama_memory_clear(self._memory, True)

    def trim(self, sequence: int, n: int) -> None:
        self.lib.llama_memory_seq_rm(self._memory, sequence, n, -1)

    def share(self, source: int, target: int, n: int) -> None:
        self.lib.llama_memory_seq_rm(self._memory, target, -1, -1)
        self.lib.llama_memory_seq_cp(self._memory, source, target, 0, n)

    def _decode(self, rows: list[tuple[int, int, int, bool]]) -> None:
        """rows of (token, position, sequence, wanted), at most 512."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = sequence, wanted
        code = self.lib.llama_decode(self._context, batch)
        if code != 0:
            raise CrosstalkError(f"llama.cpp refused a batch (code {code})")

    def _row(self, i: int) -> np.ndarray:
        pointer = self.lib.llama_get_logits_ith(self._context, i)
        return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (self._vocab,))

    def forward(self, pieces: list[Piece]) -> np.ndarray:
        rows = [
            (token, start + i, sequence, i == len(tokens) - 1)
            for sequence, tokens, start in pieces
            for i, token in enumerate(tokens)
        ]
        wanted = [i for i, row in enumerate(rows) if row[3]]
        for first in range(0, len(rows), 512):
            self._decode(rows[first : first + 512])
        last = (len(rows) - 1) // 512 * 512
        if len(pieces) == 1:
            return self._row(wanted[0] - last)[None]
        return np.stack([self._row(i - last) for i in wanted if i >= last])

    def all_logits(self, tokens: list[int]) -> np.ndarray:
        """float32 [tokens, vocab], a copy."""
        self.clear()
        out = []
        for first in range(0, len(tokens), 512):
            part = tokens[first : first + 512]
            self._decode([(token, first + i, 0, True) for i, token in enumerate(part)])
            out += [self._row(i).copy() for i in range(len(part))]
        return np.stack(out)

    def spread(self, n_seq: int, prefix: int) -> None:
        """Give sequences 1.. what sequence 0 holds: the first `prefix` positions shared, the rest copied."""
        lib, memory, tail = self.lib, self._memory, n_seq
        lib.llama_memory_seq_cp(memory, 0, tail, prefix, -1)
        size = lib.llama_state_seq_get_size(self._context, tail)
        state = (ctypes.c_uint8 * size)()
        size = lib.llama_state_seq_get_data(self._context, state, size, tail)
        lib.llama_memory_seq_rm(memory, tail, -1, -1)
        for sequence in range(1, n_seq):
            lib.llama_state_seq_set_data(self._context, state, size, sequence)
            lib.llama_memory_seq_cp(memory, 0, sequence, 0, prefix)

    def copy_whole(self, n_seq: int) -> None:
        """For a split cache, whose sequences share nothing: copy all of sequence 0."""
        for sequence in range(1, n_seq):
            self.lib.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)


def _be_quiet(lib: Any) -> None:
    callback = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(callback, None)
    _kept.append(callback)  # the library keeps the pointer


_kept: list[Any] = []


class TransformersSide:
    """transformers with torch: float32 on the CPU, bfloat16 on a GPU; models of the plain Llama kind, one sequence."""

    name = "transformers"

    def __init__(self, model_file: Any, device: str, threads: int) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise BenchUnavailable("transformers is not installed: pip install transformers torch") from error
        shape = model_file.shape
        if shape.qkv_bias or shape.qk_norm or shape.post_norms or any(layer.window for layer in shape.layers):
            raise BenchUnavailable("the transformers side is set up for plain Llama models only")
        self._torch: Any = torch
        torch.set_num_threads(threads)
        rope = shape.layers[0].rope
        config = transformers.LlamaConfig(
            vocab_size=shape.vocab, hidden_size=shape.hidden, intermediate_size=shape.ffn,
            num_hidden_layers=shape.n_layers, num_attention_heads=shape.n_heads,
            num_key_value_heads=shape.n_kv_heads, head_dim=shape.head_dim, rms_norm_eps=shape.norm_eps,
            rope_theta=rope.base, tie_word_embeddings=shape.tied_embeddings, max_position_embeddings=16384,
        )  # fmt: skip
        self._model: Any = transformers.LlamaForCausalLM(config)
        self._model.load_state_dict(_llama_state(model_file.weights, torch), strict=False)
        self._model = self._model.to(device, torch.float32 if device == "cpu" else torch.bfloat16).eval()
        self._device = device
        self._make: Any = transformers.DynamicCache
        self.clear()

    def clear(self) -> None:
        self._cache = self._make()

    def trim(self, sequence: int, n: int) -> None:
        surplus = self._cache.get_seq_length() - n
        if surplus > 0:
            self._cache.crop(-surplus)  # newer versions take only the number to remove

    def share(self, source: int, target: int, n: int) -> None:
        raise BenchUnavailable("the transformers side holds one sequence")

    def forward(self, pieces: list[Piece]) -> np.ndarray:
        ((_, tokens, _),) = pieces
        with self._torch.inference_mode():
            ids = self._torch.tensor([tokens], device=self._device)
            out = self._model(ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        return out.logits[0].float().cpu().numpy()


def _llama_state(weights: Any, torch: Any) -> dict[str, Any]:
    """Weights under the names that transformers uses."""
    names = {
        "wq": "self_attn.q_proj", "wk": "self_attn.k_proj", "wv": "self_attn.v_proj", "wo": "self_attn.o_proj",
        "w_gate": "mlp.gate_proj", "w_up": "mlp.up_proj", "w_down": "mlp.down_proj",
    }  # fmt: skip
    state = {"model.embed_tokens.weight": torch.from_numpy(weights.embed.dequantize())}
    state["model.norm.weight"] = torch.from_numpy(weights.final_norm.copy())
    head = weights.lm_head or weights.embed
    state["lm_head.weight"] = torch.from_numpy(head.dequantize())
    for number, layer in enumerate(weights.layers):
        start = f"model.layers.{number}."
        for ours, theirs in names.items():
            state[f"{start}{theirs}.weight"] = torch.from_numpy(getattr(layer, ours).dequantize())
        state[start + "input_layernorm.weight"] = torch.from_numpy(layer.attn_norm.copy())
        state[start + "post_attention_layernorm.weight"] = torch.from_numpy(layer.ffn_norm.copy())
    return state
