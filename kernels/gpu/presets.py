"""Shapes of real models and random weights for them: what benchmarks and compile checks run without a download."""

from __future__ import annotations

from enum import Enum

import torch

from kernels.contract import Activation, LayerSpec, ModelShape, RopeSpec
from kernels.gpu.weights import DeviceDense, DeviceGrouped4, DeviceGrouped8, DeviceLayer, DeviceMatrix, DeviceWeights


class Format(Enum):
    """How random matrices are stored; the two grouped ones with fp16 scales."""

    BF16 = "bf16"
    GROUPED4 = "4bit"
    GROUPED8 = "8bit"


def _full(n: int, base: float, dim: int) -> tuple[LayerSpec, ...]:
    return (LayerSpec(RopeSpec(base, dim)),) * n


def _gemma3(n: int, dim: int, window: int) -> tuple[LayerSpec, ...]:
    """Every sixth layer sees everything, the others a window."""
    far = LayerSpec(RopeSpec(1_000_000.0, dim, linear=8.0))
    near = LayerSpec(RopeSpec(10_000.0, dim), window)
    return tuple(far if i % 6 == 5 else near for i in range(n))


PRESETS: dict[str, ModelShape] = {
    "smollm2-135m": ModelShape(
        30, 576, 9, 3, 64, 1536, 49152, 1e-5, _full(30, 100_000.0, 64), tied_embeddings=True
    ),
    "llama3-8b": ModelShape(32, 4096, 32, 8, 128, 14336, 128256, 1e-5, _full(32, 500_000.0, 128)),
    "qwen3-4b": ModelShape(
        36, 2560, 32, 8, 128, 9728, 151936, 1e-6, _full(36, 1_000_000.0, 128), qk_norm=True, tied_embeddings=True
    ),
    "gemma3-4b": ModelShape(
        34, 2560, 8, 4, 256, 10240, 262144, 1e-6, _gemma3(34, 256, 1024), activation=Activation.GELU_TANH,
        qk_norm=True, post_norms=True, embed_scale=2560**0.5, tied_embeddings=True,
    ),
}  # fmt: skip


def random_matrix(rows: int, cols: int, form: Format, device: torch.device) -> DeviceMatrix:
    """About unit gain: values of standard deviation cols ** -0.5."""
    gain = cols**-0.5
    if form is Format.BF16:
        return DeviceDense(torch.empty((rows, cols), dtype=torch.bfloat16, device=device).normal_(0, gain))
    groups = (rows, cols // 32)
    if form is Format.GROUPED4:
        # Nibbles are uniform over 16 levels with standard deviation 4.6.
        scales = torch.full(groups, gain / 4.6, dtype=torch.float16, device=device)
        packed = torch.empty((*groups, 16), dtype=torch.uint8, device=device).random_(0, 256)
        return DeviceGrouped4(packed, scales, -7.5 * scales)
    quants = torch.empty((*groups, 32), dtype=torch.int8, device=device).random_(-127, 128)
    return DeviceGrouped8(quants, torch.full(groups, gain / 73.0, dtype=torch.float16, device=device))


def random_weights(shape: ModelShape, form: Format, device: torch.device, layers: int | None = None) -> DeviceWeights:
    """Weights of a whole model (or of its first `layers`) made on the device."""

    def ones(n: int) -> torch.Tensor:
        return torch.ones(n, dtype=torch.float32, device=device)

    def layer() -> DeviceLayer:
        q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        return DeviceLayer(
            attn_norm=ones(shape.hidden),
            qkv=(random_matrix(q + 2 * kv, shape.hidden, form, device),),
            wo=random_matrix(shape.hidden, q, form, device),
            ffn_norm=ones(shape.hidden),
            gate_up=(random_matrix(2 * shape.ffn, shape.hidden, form, device),),
            w_down=random_matrix(shape.hidden, shape.ffn, form, device),
            qkv_bias=ones(q + 2 * kv) * 0 if shape.qkv_bias else None,
            q_norm=ones(shape.head_dim) if shape.qk_norm else None,
            k_norm=ones(shape.head_dim) if shape.qk_norm else None,
            post_attn_norm=ones(shape.hidden) if shape.post_norms else None,
            post_ffn_norm=ones(shape.hidden) if shape.post_norms else None,
        )

    embed = random_matrix(shape.vocab, shape.hidden, form, device)
    head = embed if shape.tied_embeddings else random_matrix(shape.vocab, shape.hidden, form, device)
    count = shape.n_layers if layers is None else layers
    return DeviceWeights(embed, tuple(layer() for _ in range(count)), ones(shape.hidden), head)
