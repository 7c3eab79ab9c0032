"""Transformers models around weights this project loaded: the reference for whole-model logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from engine.loading.model_file import ModelFile
from kernels.weights import WeightTensor


def _put(target: torch.nn.Parameter, value: WeightTensor | np.ndarray, minus: float = 0.0) -> None:
    array = value.dequantize() if isinstance(value, WeightTensor) else np.array(value, np.float32)
    target.data = torch.from_numpy(array - np.float32(minus))


def transformers_model(file: ModelFile) -> Any:
    """Llama or Gemma 3 of transformers, float32, with exactly the (dequantised) weights of `file`."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

    shape, gemma = file.shape, file.architecture == "gemma3"
    common = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads,
        "num_key_value_heads": shape.n_kv_heads,
        "head_dim": shape.head_dim,
        "rms_norm_eps": shape.norm_eps,
        "max_position_embeddings": file.context_length,
        "tie_word_embeddings": True,
        "attn_implementation": "eager",
    }
    with torch.device("meta"):
        if gemma:
            config = Gemma3TextConfig(
                **common,
                query_pre_attn_scalar=shape.head_dim,
                sliding_window=512,
                layer_types=["sliding_attention" if layer.window else "full_attention" for layer in shape.layers],
                rope_parameters={
                    "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                },
            )
            model = Gemma3ForCausalLM(config)
        else:
            base = shape.layers[0].rope.base
            config = LlamaConfig(**common, rope_parameters={"rope_type": "default", "rope_theta": base})
            model = LlamaForCausalLM(config)
    model = model.to_empty(device="cpu").eval()
    one = 1.0 if gemma else 0.0
    _put(model.model.embed_tokens.weight, file.weights.embed)
    model.lm_head.weight = model.model.embed_tokens.weight
    _put(model.model.norm.weight, file.weights.final_norm, one)
    for layer, weights in zip(model.model.layers, file.weights.layers, strict=True):
        attention, mlp = layer.self_attn, layer.mlp
        for target, value in (
            (attention.q_proj, weights.wq),
            (attention.k_proj, weights.wk),
            (attention.v_proj, weights.wv),
            (attention.o_proj, weights.wo),
            (mlp.gate_proj, weights.w_gate),
            (mlp.up_proj, weights.w_up),
            (mlp.down_proj, weights.w_down),
        ):
            _put(target.weight, value)
        _put(layer.input_layernorm.weight, weights.attn_norm, one)
        if gemma:
            _put(layer.post_attention_layernorm.weight, weights.post_attn_norm, one)
            _put(layer.pre_feedforward_layernorm.weight, weights.ffn_norm, one)
            _put(layer.post_feedforward_layernorm.weight, weights.post_ffn_norm, one)
            _put(attention.q_norm.weight, weights.q_norm, one)
            _put(attention.k_norm.weight, weights.k_norm, one)
        else:
            _put(layer.post_attention_layernorm.weight, weights.ffn_norm)
    # Buffers left on the meta device by the construction above.
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    if gemma:
        embedding = model.model.embed_tokens
        embedding.embed_scale = torch.tensor(shape.hidden**0.5)
    return model
