"""Folders in Hugging Face layout: config.json, *.safetensors, tokenizer.json, a chat template."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFileError, UnsupportedModelError
from engine.loading.families import Family, Sizes, build_shape, family_of, gemma3_windows
from engine.loading.model_file import ModelFile, Vocabulary
from engine.loading.safetensors_file import Stored, read_safetensors
from kernels.contract import ModelShape, RopeSpec
from kernels.weights import LayerWeights, ModelWeights, WeightTensor


def read_folder(path: Path) -> ModelFile:
    """Read one folder; weights stay views of the mapped files."""
    config = _json(path / "config.json")
    config = config.get("text_config", config)
    architecture = str(config.get("model_type", ""))
    family = family_of(architecture)
    tensors: dict[str, Stored] = {}
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise ModelFileError(f"{path} holds no safetensors file.")
    for file in files:
        tensors.update(read_safetensors(file))
    shape = build_shape(family, _sizes(path, config, family, tensors))
    return ModelFile(
        path=path,
        name=path.name,
        architecture=architecture,
        shape=shape,
        weights=_Weights(path, tensors, shape, norm_offset=1.0 if family is Family.GEMMA3 else 0.0).all(),
        vocabulary=_vocabulary(path, config),
        chat_template=_template(path),
        context_length=int(config.get("max_position_embeddings", 2048)),
        fingerprint=_fingerprint(config, tensors),
    )


def _json(path: Path, missing_ok: bool = False) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if missing_ok:
            return {}
        raise ModelFileError(f"{path.parent} lacks {path.name}.") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is not a JSON object.")
    return content


# ---- sizes -------------------------------------------------------------------------------------------------------


def _sizes(path: Path, config: dict[str, Any], family: Family, tensors: dict[str, Stored]) -> Sizes:
    def need(key: str) -> Any:
        if config.get(key) is None:
            raise ModelFileError(f"{path / 'config.json'} lacks {key}.")
        return config[key]

    n_layers, hidden, n_heads = (
        int(need("num_hidden_layers")),
        int(need("hidden_size")),
        int(need("num_attention_heads")),
    )
    head_dim = int(config.get("head_dim") or hidden // n_heads)
    rope, local = _ropes(config, head_dim, family)
    scalar = config.get("query_pre_attn_scalar") if family is Family.GEMMA3 else None
    return Sizes(
        n_layers=n_layers,
        hidden=hidden,
        n_heads=n_heads,
        n_kv_heads=int(config.get("num_key_value_heads") or n_heads),
        head_dim=head_dim,
        ffn=int(need("intermediate_size")),
        vocab=int(need("vocab_size")),
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        windows=_windows(config, family, n_layers),
        rope=rope,
        rope_local=local,
        attn_scale=float(scalar) ** -0.5 if scalar else 0.0,
        tied_embeddings="lm_head.weight" not in tensors,
        qkv_bias="model.layers.0.self_attn.q_proj.bias" in tensors,
    )


def _windows(config: dict[str, Any], family: Family, n_layers: int) -> tuple[int | None, ...]:
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return (None,) * n_layers
    kinds = config.get("layer_types")
    if kinds:
        return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds)
    if family is Family.GEMMA3:
        return gemma3_windows(n_layers, int(window), int(config.get("sliding_window_pattern", 6)))
    return (int(window),) * n_layers if family is Family.MISTRAL else (None,) * n_layers


def _ropes(config: dict[str, Any], head_dim: int, family: Family) -> tuple[RopeSpec, RopeSpec | None]:
    """RoPE of full and of windowed layers, from the older flat keys or the newer `rope_parameters`."""
    given = config.get("rope_parameters") or {}
    base = float(config.get("rope_theta") or 10000.0)
    if "full_attention" in given or "sliding_attention" in given:
        full = _rope(given.get("full_attention", {}), base, head_dim)
        return full, _rope(given.get("sliding_attention", {}), base, head_dim)
    rope = _rope(given or config.get("rope_scaling") or {}, base, head_dim)
    if family is Family.GEMMA3:
        return rope, RopeSpec(float(config.get("rope_local_base_freq") or 10000.0), head_dim)
    return rope, None


def _rope(entry: dict[str, Any], base: float, head_dim: int) -> RopeSpec:
    base = float(entry.get("rope_theta") or base)
    kind = entry.get("rope_type") or entry.get("type") or "default"
    if kind == "default":
        return RopeSpec(base, head_dim)
    if kind == "linear":
        return RopeSpec(base, head_dim, linear=float(entry["factor"]))
    if kind == "llama3":
        return RopeSpec(base, head_dim, factors=llama3_factors(entry, base, head_dim))
    raise UnsupportedModelError(f"RoPE scaling {kind!r} is not supported (default, linear and llama3 are).")


def llama3_factors(entry: dict[str, Any], base: float, dim: int) -> tuple[float, ...]:
    """Divisor of each pair's frequency: 1 for fast pairs, `factor` for slow ones, a ramp between.

    With 8,192 positions of original context, pairs that turn more than four times in it (wavelength < 2,048) are left
    alone and those that do not turn once (wavelength > 8,192) are slowed by the whole factor.
    """
    factor, low, high = float(entry["factor"]), float(entry["low_freq_factor"]), float(entry["high_freq_factor"])
    context = float(entry["original_max_position_embeddings"])
    wavelength = 2 * np.pi * base ** (np.arange(0, dim, 2) / dim)
    smooth = np.clip((context / wavelength - low) / (high - low), 0.0, 1.0)
    return tuple((1.0 / ((1 - smooth) / factor + smooth)).tolist())


# ---- tensors -----------------------------------------------------------------------------------------------------


class _Weights:
    """Looks tensors up by Hugging Face name, checks their shape, names what is missing."""

    def __init__(self, path: Path, tensors: dict[str, Stored], shape: ModelShape, norm_offset: float) -> None:
        self.path, self.tensors, self.shape, self.norm_offset = path, tensors, shape, norm_offset

    def _find(self, name: str, dims: tuple[int, ...]) -> Stored:
        stored = self.tensors.get(name) or self.tensors.get("language_model." + name)
        if stored is None:
            raise ModelFileError(f"{self.path} lacks the tensor {name}.")
        if stored.array.shape != dims:
            raise ModelFileError(f"The tensor {name} in {self.path} has shape {stored.array.shape}, expected {dims}.")
        return stored

    def matrix(self, name: str, rows: int, cols: int) -> WeightTensor:
        array, dtype = self._find(name + ".weight", (rows, cols))
        if dtype == "BF16":
            return WeightTensor(array.view(np.uint8), rows, cols, "BF16")
        return WeightTensor(array, rows, cols)

    def vector(self, name: str, size: int, offset: float = 0.0) -> np.ndarray:
        array, dtype = self._find(name, (size,))
        if dtype == "BF16":
            array = WeightTensor(array[None].view(np.uint8), 1, size, "BF16").dequantize()[0]
        return array.astype(np.float32) + np.float32(offset)

    def norm(self, name: str, size: int) -> np.ndarray:
        return self.vector(name + ".weight", size, self.norm_offset)

    def all(self) -> ModelWeights:
        shape = self.shape
        return ModelWeights(
            embed=self.matrix("model.embed_tokens", shape.vocab, shape.hidden),
            layers=tuple(self._layer(f"model.layers.{i}.") for i in range(shape.n_layers)),
            final_norm=self.norm("model.norm", shape.hidden),
            lm_head=None if shape.tied_embeddings else self.matrix("lm_head", shape.vocab, shape.hidden),
        )

    def _layer(self, b: str) -> LayerWeights:
        shape = self.shape
        q_rows, kv_rows, hidden = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim, shape.hidden
        a, m, bias = b + "self_attn.", b + "mlp.", shape.qkv_bias
        before_ffn = "pre_feedforward_layernorm" if shape.post_norms else "post_attention_layernorm"
        return LayerWeights(
            attn_norm=self.norm(b + "input_layernorm", hidden),
            wq=self.matrix(a + "q_proj", q_rows, hidden),
            wk=self.matrix(a + "k_proj", kv_rows, hidden),
            wv=self.matrix(a + "v_proj", kv_rows, hidden),
            wo=self.matrix(a + "o_proj", hidden, q_rows),
            ffn_norm=self.norm(b + before_ffn, hidden),
            w_gate=self.matrix(m + "gate_proj", shape.ffn, hidden),
            w_up=self.matrix(m + "up_proj", shape.ffn, hidden),
            w_down=self.matrix(m + "down_proj", hidden, shape.ffn),
            bq=self.vector(a + "q_proj.bias", q_rows) if bias else None,
            bk=self.vector(a + "k_proj.bias", kv_rows) if bias else None,
            bv=self.vector(a + "v_proj.bias", kv_rows) if bias else None,
            q_norm=self.norm(a + "q_norm", shape.head_dim) if shape.qk_norm else None,
            k_norm=self.norm(a + "k_norm", shape.head_dim) if shape.qk_norm else None,
            post_attn_norm=self.norm(b + "post_attention_layernorm", hidden) if shape.post_norms else None,
            post_ffn_norm=self.norm(b + "post_feedforward_layernorm", hidden) if shape.post_norms else None,
        )


# ---- text --------------------------------------------------------------------------------------------------------


def _vocabulary(path: Path, config: dict[str, Any]) -> Vocabulary:
    file = path / "tokenizer.json"
    if not file.exists():
        raise ModelFileError(f"{path} lacks tokenizer.json.")
    added = {entry["content"]: entry["id"] for entry in _json(file).get("added_tokens", [])}
    about = _json(path / "tokenizer_config.json", missing_ok=True)

    def token_id(name: str) -> int | None:
        token = about.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        value = added.get(token) if token is not None else config.get(name.replace("_token", "_token_id"))
        return value[0] if isinstance(value, list) else value

    ends: set[int] = set()
    for source in (config, _json(path / "generation_config.json", missing_ok=True)):
        value = source.get("eos_token_id")
        ends.update(value if isinstance(value, list) else [] if value is None else [value])
    names = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "</s>")
    ends.update(added[name] for name in names if name in added)
    eos = token_id("eos_token")
    if eos is not None:
        ends.add(eos)
    return Vocabulary(
        json_file=file,
        add_bos=bool(about.get("add_bos_token", False)),
        bos=token_id("bos_token"),
        eos=eos,
        stop_tokens=tuple(sorted(ends)),
    )


def _template(path: Path) -> str | None:
    file = path / "chat_template.jinja"
    if file.exists():
        return file.read_text(encoding="utf-8")
    template = _json(path / "tokenizer_config.json", missing_ok=True).get("chat_template")
    if isinstance(template, list):  # several, by name
        template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
    return template


def _fingerprint(config: dict[str, Any], tensors: dict[str, Stored]) -> str:
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for name in sorted(tensors):
        flat = tensors[name].array.reshape(-1)
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].array.shape}".encode())
        digest.update(flat[:64].tobytes())
        digest.update(flat[-64:].tobytes())
    return digest.hexdigest()
