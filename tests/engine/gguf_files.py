"""Writes loaded weights as GGUF, the way llama.cpp's converter lays the families out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from engine.loading.model_file import ModelFile


def paired_order(n_heads: int, head_dim: int) -> np.ndarray:
    """Halves to adjacent pairs: rows 0, d/2, 1, d/2 + 1, ..."""
    within = np.arange(head_dim).reshape(2, head_dim // 2).T.reshape(-1)
    return (np.arange(n_heads)[:, None] * head_dim + within).reshape(-1)


def write_gguf(path: Path, file: ModelFile, drop: str = "", arch: str | None = None) -> None:
    """Everything float32; `drop` leaves one tensor out."""
    shape = file.shape
    arch = arch or {"mistral": "llama", "gemma3_text": "gemma3"}.get(file.architecture, file.architecture)
    writer = GGUFWriter(path, arch)
    writer.add_context_length(file.context_length)
    writer.add_block_count(shape.n_layers)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.norm_eps)
    full = next((layer.rope for layer in shape.layers if layer.window is None), shape.layers[0].rope)
    writer.add_rope_freq_base(full.base)
    if full.linear != 1.0:
        from gguf import RopeScalingType

        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(full.linear)
    windows = [layer.window for layer in shape.layers if layer.window]
    if windows:
        writer.add_sliding_window(windows[0])
        fulls = [i for i, layer in enumerate(shape.layers) if not layer.window]
        if fulls:
            writer.add_uint32(f"{arch}.attention.sliding_window_pattern", fulls[0] + 1)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b", "ab", *(f"t{i}" for i in range(3, shape.vocab))])
    writer.add_token_types([1] * shape.vocab)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(0)

    def put(name: str, value) -> None:
        if value is not None and name != drop:
            array = value if isinstance(value, np.ndarray) else value.dequantize()
            writer.add_tensor(name, np.ascontiguousarray(array, np.float32))

    if full.factors is not None:
        put("rope_freqs.weight", np.array(full.factors, np.float32))
    put("token_embd.weight", file.weights.embed)
    put("output_norm.weight", file.weights.final_norm)
    put("output.weight", file.weights.lm_head)
    for i, layer in enumerate(file.weights.layers):
        b = f"blk.{i}."
        wq, wk = layer.wq.dequantize(), layer.wk.dequantize()
        bq, bk = layer.bq, layer.bk
        if arch == "llama":
            q, k = paired_order(shape.n_heads, shape.head_dim), paired_order(shape.n_kv_heads, shape.head_dim)
            wq, wk = wq[q], wk[k]
        for name, value in (
            ("attn_norm.weight", layer.attn_norm),
            ("attn_q.weight", wq),
            ("attn_k.weight", wk),
            ("attn_v.weight", layer.wv),
            ("attn_output.weight", layer.wo),
            ("attn_q.bias", bq),
            ("attn_k.bias", bk),
            ("attn_v.bias", layer.bv),
            ("attn_q_norm.weight", layer.q_norm),
            ("attn_k_norm.weight", layer.k_norm),
            ("post_attention_norm.weight", layer.post_attn_norm),
            ("ffn_norm.weight", layer.ffn_norm),
            ("ffn_gate.weight", layer.w_gate),
            ("ffn_up.weight", layer.w_up),
            ("ffn_down.weight", layer.w_down),
            ("post_ffw_norm.weight", layer.post_ffn_norm),
        ):
            put(b + name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
