"""GGUF files of the supported families: metadata to sizes, tensors to weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFileError, UnsupportedModelError
from engine.loading.families import Family, Sizes, build_shape, family_of, gemma3_windows
from engine.loading.gguf_reader import QuickReader, open_gguf
from engine.loading.model_file import ModelFile, Vocabulary
from kernels.contract import ModelShape, RopeSpec
from kernels.weights import LayerWeights, ModelWeights, WeightTensor

_BOS_BY_DEFAULT = {"llama3", "llama-v3", "llama-bpe"}
_DENSE = {"F32", "F16", "F64"}
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "</s>")


def read_gguf(path: Path) -> ModelFile:
    """Read one GGUF file; weights stay views of the mapped file."""
    reader = open_gguf(path)
    architecture = reader.value("general.architecture")
    if not isinstance(architecture, str):
        raise ModelFileError(f"{path} names no architecture.")
    family = family_of(architecture)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    shape = build_shape(family, _sizes(path, reader, architecture, family, tensors))
    weights = _Weights(path, tensors, shape, unpair=family in (Family.LLAMA, Family.MISTRAL)).all()
    return ModelFile(
        path=path,
        name=str(reader.value("general.name", path.stem)),
        architecture=architecture,
        shape=shape,
        weights=weights,
        vocabulary=_vocabulary(path, reader),
        chat_template=reader.value("tokenizer.chat_template"),
        context_length=int(reader.value(f"{architecture}.context_length", 2048)),
        fingerprint=_fingerprint(reader),
    )


def _sizes(path: Path, reader: QuickReader, arch: str, family: Family, tensors: dict[str, Any]) -> Sizes:
    def need(key: str) -> Any:
        value = reader.value(f"{arch}.{key}")
        if value is None:
            raise ModelFileError(f"{path} lacks the metadata {arch}.{key}.")
        return value

    n_layers, hidden, n_heads = (
        int(need("block_count")),
        int(need("embedding_length")),
        int(need("attention.head_count")),
    )
    head_dim = int(reader.value(f"{arch}.attention.key_length", hidden // n_heads))
    window = reader.value(f"{arch}.attention.sliding_window")
    windows: tuple[int | None, ...] = (None,) * n_layers
    if family is Family.GEMMA3 and window:
        windows = gemma3_windows(
            n_layers, int(window), int(reader.value(f"{arch}.attention.sliding_window_pattern", 6))
        )
    elif family in (Family.LLAMA, Family.MISTRAL) and window:
        windows = (int(window),) * n_layers
    dim = int(reader.value(f"{arch}.rope.dimension_count", head_dim))
    scaling = reader.value(f"{arch}.rope.scaling.type", "none")
    if scaling not in ("none", "linear", "llama3"):
        raise UnsupportedModelError(f"RoPE scaling {scaling!r} in {path} is not supported; use a file without it.")
    linear = float(reader.value(f"{arch}.rope.scaling.factor", 1.0)) if scaling == "linear" else 1.0
    factors = None
    if "rope_freqs.weight" in tensors:
        factors = tuple(float(f) for f in np.asarray(tensors["rope_freqs.weight"].data, np.float32))
    base = float(reader.value(f"{arch}.rope.freq_base", 10000.0))
    if "token_embd.weight" not in tensors:
        raise ModelFileError(f"{path} lacks the tensor token_embd.weight.")
    return Sizes(
        n_layers=n_layers,
        hidden=hidden,
        n_heads=n_heads,
        n_kv_heads=int(reader.value(f"{arch}.attention.head_count_kv", n_heads)),
        head_dim=head_dim,
        ffn=int(need("feed_forward_length")),
        vocab=int(tensors["token_embd.weight"].shape[1]),
        norm_eps=float(need("attention.layer_norm_rms_epsilon")),
        windows=windows,
        rope=RopeSpec(base, dim, factors, linear),
        # The one number llama.cpp keeps in its code and not in the file: Gemma's local layers turn with base 10,000.
        rope_local=RopeSpec(float(reader.value(f"{arch}.rope.freq_base_swa", 10000.0)), dim)
        if family is Family.GEMMA3
        else None,
        # Likewise Gemma 3 27B alone scales its queries by hidden / heads.
        attn_scale=(hidden / n_heads) ** -0.5 if family is Family.GEMMA3 and n_layers == 62 else 0.0,
        tied_embeddings="output.weight" not in tensors,
        qkv_bias="blk.0.attn_q.bias" in tensors,
    )


class _Weights:
    """Looks tensors up by GGUF name, checks their shape, names what is missing."""

    def __init__(self, path: Path, tensors: dict[str, Any], shape: ModelShape, unpair: bool) -> None:
        self.path, self.tensors, self.shape, self.unpair = path, tensors, shape, unpair

    def _find(self, name: str, dims: tuple[int, ...]) -> Any:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelFileError(f"{self.path} lacks the tensor {name}.")
        found = tuple(int(d) for d in reversed(tensor.shape.tolist()))
        if found != dims:
            raise ModelFileError(f"The tensor {name} in {self.path} has shape {found}, expected {dims}.")
        return tensor

    def matrix(self, name: str, rows: int, cols: int) -> WeightTensor:
        tensor = self._find(name, (rows, cols))
        kind = tensor.tensor_type.name
        return WeightTensor(tensor.data, rows, cols, None if kind in _DENSE else kind)

    def vector(self, name: str, size: int) -> np.ndarray:
        tensor = self._find(name, (size,))
        if tensor.tensor_type.name not in _DENSE:
            return WeightTensor(tensor.data[None], 1, size, tensor.tensor_type.name).dequantize()[0]
        return np.array(tensor.data, np.float32)

    def optional(self, wanted: bool, name: str, size: int) -> np.ndarray | None:
        return self.vector(name, size) if wanted else None

    def all(self) -> ModelWeights:
        shape = self.shape
        return ModelWeights(
            embed=self.matrix("token_embd.weight", shape.vocab, shape.hidden),
            layers=tuple(self._layer(i) for i in range(shape.n_layers)),
            final_norm=self.vector("output_norm.weight", shape.hidden),
            lm_head=None if shape.tied_embeddings else self.matrix("output.weight", shape.vocab, shape.hidden),
        )

    def _layer(self, i: int) -> LayerWeights:
        shape, b = self.shape, f"blk.{i}."
        q_rows, kv_rows = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        wq = self.matrix(b + "attn_q.weight", q_rows, shape.hidden)
        wk = self.matrix(b + "attn_k.weight", kv_rows, shape.hidden)
        bq = self.optional(shape.qkv_bias, b + "attn_q.bias", q_rows)
        bk = self.optional(shape.qkv_bias, b + "attn_k.bias", kv_rows)
        if self.unpair:
            q_order = unpaired_order(shape.n_heads, shape.head_dim)
            k_order = unpaired_order(shape.n_kv_heads, shape.head_dim)
            wq, wk = wq.take_rows(q_order), wk.take_rows(k_order)
            bq, bk = (None if bq is None else bq[q_order]), (None if bk is None else bk[k_order])
        post = shape.post_norms
        return LayerWeights(
            attn_norm=self.vector(b + "attn_norm.weight", shape.hidden),
            wq=wq,
            wk=wk,
            wv=self.matrix(b + "attn_v.weight", kv_rows, shape.hidden),
            wo=self.matrix(b + "attn_output.weight", shape.hidden, q_rows),
            ffn_norm=self.vector(b + "ffn_norm.weight", shape.hidden),
            w_gate=self.matrix(b + "ffn_gate.weight", shape.ffn, shape.hidden),
            w_up=self.matrix(b + "ffn_up.weight", shape.ffn, shape.hidden),
            w_down=self.matrix(b + "ffn_down.weight", shape.hidden, shape.ffn),
            bq=bq,
            bk=bk,
            bv=self.optional(shape.qkv_bias, b + "attn_v.bias", kv_rows),
            q_norm=self.optional(shape.qk_norm, b + "attn_q_norm.weight", shape.head_dim),
            k_norm=self.optional(shape.qk_norm, b + "attn_k_norm.weight", shape.head_dim),
            post_attn_norm=self.optional(post, b + "post_attention_norm.weight", shape.hidden),
            post_ffn_norm=self.optional(post, b + "post_ffw_norm.weight", shape.hidden),
        )


def unpaired_order(n_heads: int, head_dim: int) -> np.ndarray:
    """Row order that turns adjacent rotary pairs into halves.

    GGUF `llama` files store a head's rows as 0, d/2, 1, d/2+1, ...; with head_dim 4 they are [0 2 1 3], and taking rows
    [0 2 1 3] of that gives 0 1 2 3 back.
    """
    within = np.arange(head_dim).reshape(head_dim // 2, 2).T.reshape(-1)
    return (np.arange(n_heads)[:, None] * head_dim + within).reshape(-1)


def _vocabulary(path: Path, reader: QuickReader) -> Vocabulary:
    def get(key: str, default: Any = None) -> Any:
        return reader.value(f"tokenizer.ggml.{key}", default)

    tokens = get("tokens")
    if not tokens:
        raise ModelFileError(f"{path} holds no tokenizer (tokenizer.ggml.tokens is missing).")
    model = get("model")
    if model not in ("gpt2", "llama"):
        raise UnsupportedModelError(f"The tokenizer type {model!r} in {path} is not supported.")
    spm = model == "llama"
    bos, eos = get("bos_token_id"), get("eos_token_id")
    ends = {int(i) for i in (eos, get("eot_token_id"), get("eom_token_id")) if i is not None}
    types = tuple(get("token_type", [1] * len(tokens)))
    index = {token: i for i, token in enumerate(tokens) if types[i] == 3}
    ends.update(index[name] for name in _TURN_ENDS if name in index)
    return Vocabulary(
        tokens=tuple(tokens),
        kind="spm" if spm else "bpe",
        pre=get("pre", "default"),
        merges=tuple(get("merges", ())),
        scores=tuple(get("scores", ())),
        types=types,
        add_space_prefix=bool(get("add_space_prefix", spm)),
        add_bos=bool(get("add_bos_token", spm or get("pre") in _BOS_BY_DEFAULT)) and bos is not None,
        bos=None if bos is None else int(bos),
        eos=None if eos is None else int(eos),
        unknown=None if get("unknown_token_id") is None else int(get("unknown_token_id")),
        stop_tokens=tuple(sorted(ends)),
    )


def _fingerprint(reader: QuickReader) -> str:
    """Digest of the header (all metadata, names and offsets) and of the ends of every tensor."""
    digest = hashlib.sha256()
    digest.update(reader.data[: reader.data_offset].tobytes())
    for tensor in reader.tensors:
        raw = reader.data[tensor.data_offset : tensor.data_offset + tensor.n_bytes]
        digest.update(raw[:256].tobytes())
        digest.update(raw[-256:].tobytes())
    return digest.hexdigest()
