"""The whole model, interpreted, against the plain torch reference; and the cache, the back end and the engine on it."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest
import torch

from kernels import pick
from kernels.contract import Activation, CacheGroupSpec, ForwardBatch, KernelError, LayerSpec, ModelShape, RopeSpec
from kernels.formats import quantize8
from kernels.gpu import BACKEND, Compute, GpuSettings
from kernels.gpu.model import GpuModel
from kernels.gpu.sampling import RowSampling
from kernels.reference import BACKEND as REFERENCE
from kernels.weights import LayerWeights, ModelWeights, WeightTensor

SETTINGS = GpuSettings(compute=Compute.FLOAT32, split=16, prefill_rows=6, launch_bytes=0)


def shape_of(**changes: object) -> ModelShape:
    """Two layers, the first of them windowed."""
    near, far = LayerSpec(RopeSpec(10000.0, 16), 11), LayerSpec(RopeSpec(100000.0, 16, linear=2.0))
    values: dict = dict(
        n_layers=2, hidden=32, n_heads=4, n_kv_heads=2, head_dim=16, ffn=64, vocab=50, norm_eps=1e-5,
        layers=(near, far), tied_embeddings=True,
    )  # fmt: skip
    return ModelShape(**(values | changes))


def q8(array: np.ndarray) -> WeightTensor:
    """As GGUF Q8_0 blocks: fp16 scale, 32 signed bytes."""
    form = quantize8(array)
    scales = form.scales.astype(np.float16)[..., None].view(np.uint8).reshape(*form.scales.shape, 2)
    raw = np.concatenate((scales, form.quants.view(np.uint8)), axis=2)
    return WeightTensor(raw.reshape(len(array), -1), array.shape[0], array.shape[1], "Q8_0")


def q4(array: np.ndarray) -> WeightTensor:
    """As GGUF Q4_1 blocks: fp16 scale and minimum, 16 bytes of nibbles."""
    groups = array.reshape(len(array), -1, 32)
    least = groups.min(2).astype(np.float16)
    scale = ((groups.max(2) - groups.min(2)) / 15).astype(np.float16)
    quants = np.clip(np.rint((groups - least[..., None]) / scale[..., None]), 0, 15).astype(np.uint8)
    both = np.stack((scale, least), 2).view(np.uint8)
    raw = np.concatenate((both, quants[..., :16] | (quants[..., 16:] << 4)), axis=2)
    return WeightTensor(raw.reshape(len(array), -1), array.shape[0], array.shape[1], "Q4_1")


def weights_of(shape: ModelShape, kinds: tuple = (WeightTensor.dense,), seed: int = 0) -> ModelWeights:
    """Random weights; the matrices go through `kinds` in turn, so that one layer may mix formats."""
    rng = np.random.default_rng(seed)
    turn = 0

    def matrix(rows: int, cols: int) -> WeightTensor:
        nonlocal turn
        turn += 1
        return kinds[turn % len(kinds)]((rng.standard_normal((rows, cols)) * 1.5 / cols**0.5).astype(np.float32))

    def vector(size: int, wanted: bool = True) -> np.ndarray | None:
        return (1 + 0.2 * rng.standard_normal(size)).astype(np.float32) if wanted else None

    q, kv, h = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim, shape.hidden

    def layer() -> LayerWeights:
        return LayerWeights(
            attn_norm=vector(h), wq=matrix(q, h), wk=matrix(kv, h), wv=matrix(kv, h), wo=matrix(h, q),
            ffn_norm=vector(h), w_gate=matrix(shape.ffn, h), w_up=matrix(shape.ffn, h), w_down=matrix(h, shape.ffn),
            bq=vector(q, shape.qkv_bias), bk=vector(kv, shape.qkv_bias), bv=vector(kv, shape.qkv_bias),
            q_norm=vector(shape.head_dim, shape.qk_norm), k_norm=vector(shape.head_dim, shape.qk_norm),
            post_attn_norm=vector(h, shape.post_norms), post_ffn_norm=vector(h, shape.post_norms),
        )  # fmt: skip

    head = None if shape.tied_embeddings else matrix(shape.vocab, h)
    layers = tuple(layer() for _ in range(shape.n_layers))
    return ModelWeights(matrix(shape.vocab, h), layers, vector(h), head)


def groups_of(pages: int = 12, page: int = 4) -> tuple[CacheGroupSpec, ...]:
    return CacheGroupSpec((1,), pages, page), CacheGroupSpec((0,), pages, page, 11)


def batch_of(ids: list[list[int]], starts: list[int], tables: list, rows: list[int]) -> ForwardBatch:
    """Sequences with new `ids` from the positions `starts` on."""
    counts = [len(part) for part in ids]
    return ForwardBatch(
        token_ids=np.array(sum(ids, []), np.int32),
        positions=np.concatenate([np.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]).astype(np.int32),
        seq_starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        context_lens=np.array([s + n for s, n in zip(starts, counts, strict=True)], np.int32),
        block_tables=tuple(np.array(table, np.int32) for table in tables),
        logit_rows=np.array(rows, np.int32),
    )


A = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3]
"""18 tokens: four pages and a half, more than a window, more than a split."""


def conversation() -> list[ForwardBatch]:
    """A prefill; a decode step in which the window has left two pages; a fork that appends beside it; both decode."""
    full, near = [0, 1, 2, 3, 4, -1], [5, 6, 7, 8, 9, -1]
    late, fork, near_fork = [-1, -1, 7, 8, 9, -1], [0, 1, 2, 3, 10, -1], [-1, 6, 7, 8, 10, -1]
    return [
        batch_of([A], [0], [[full], [near]], [0, 9, 17]),
        batch_of([[11]], [18], [[full], [late]], [0]),
        batch_of([[12], [13, 14, 15]], [19, 16], [[full, fork], [late, near_fork]], [0, 3]),
        batch_of(
            [[7], [8]], [20, 19], [[[0, 1, 2, 3, 4, 11], fork], [[-1, -1, 7, 8, 9, 11], [-1, -1, 7, 8, 10, -1]]], [0, 1]
        ),
    ]


FAMILIES = {
    "llama": shape_of(),
    "qwen2": shape_of(qkv_bias=True, tied_embeddings=False),
    "qwen3": shape_of(qk_norm=True, n_heads=6, n_kv_heads=2),
    "gemma3": shape_of(
        qk_norm=True, post_norms=True, activation=Activation.GELU_TANH, embed_scale=5.6, n_kv_heads=1, attn_scale=0.3
    ),
}


def run(model: object, dtype: str) -> list[np.ndarray]:
    cache = model.make_cache(groups_of(), dtype)
    return [model.forward(batch, cache).copy() for batch in conversation()]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_conversation_equals_the_reference(family: str) -> None:
    shape = FAMILIES[family]
    weights = weights_of(shape)
    got = run(BACKEND.load(shape, weights, settings=SETTINGS), "float32")
    want = run(REFERENCE.load(shape, weights), "float32")
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("kinds", ((q4,), (q4, q8, WeightTensor.dense)), ids=("4bit", "mixed"))
def test_grouped_weights_equal_the_reference(kinds: tuple) -> None:
    """Formats may differ inside a layer; the reference multiplies what they stand for."""
    shape = shape_of()
    weights = weights_of(shape, kinds)
    got = run(BACKEND.load(shape, weights, settings=SETTINGS), "float32")
    for mine, theirs in zip(got, run(REFERENCE.load(shape, weights), "float32"), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize(
    ("dtype", "compute", "allowed"),
    (
        ("float16", Compute.FLOAT32, 0.01),
        ("bfloat16", Compute.BFLOAT16, 0.12),
        ("int8", Compute.FLOAT32, 0.05),
        pytest.param("float8", Compute.FLOAT16, 0.5, marks=pytest.mark.slow),  # the interpreter cuts fp8 off
    ),
)
def test_stored_and_computed_types_stay_close(dtype: str, compute: Compute, allowed: float) -> None:
    """Largest error of a logit over the logits' standard deviation."""
    shape = shape_of()
    weights = weights_of(shape)
    settings = dataclasses.replace(SETTINGS, compute=compute)
    got = run(BACKEND.load(shape, weights, settings=settings), dtype)
    for mine, theirs in zip(got, run(REFERENCE.load(shape, weights), "float32"), strict=True):
        assert np.abs(mine - theirs).max() / theirs.std() < allowed


def test_padding_to_a_graph_bucket_and_sampling_on_the_card() -> None:
    """Three rows padded to four give the logits of three; a chained step starts from ids the host never saw."""
    shape = shape_of()
    model = BACKEND.load(shape, weights_of(shape), settings=SETTINGS)
    assert isinstance(model, GpuModel)
    cache = model.make_cache(groups_of(), "float32")
    tables = [[[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5]]]
    model.forward(batch_of([[1, 2], [3, 4], [5, 6]], [0, 0, 0], tables, [1, 3, 5]), cache)
    step = batch_of([[7], [8], [9]], [2, 2, 2], tables, [0, 1, 2])
    plain = model.forward(step, cache).copy()

    from kernels.gpu.inputs import plan_step

    shapes = [model.plan_shape(cache, group) for group in range(2)]
    padded = model.step(model.send(plan_step(step, shapes, padded=True)), cache)
    assert padded.shape[0] == 4
    np.testing.assert_array_equal(padded[:3].numpy(), plain)

    chosen = model.choose_next(step, cache, [RowSampling()] * 3).ids()
    np.testing.assert_array_equal(chosen, plain.argmax(1))
    chained = batch_of([[-1], [-2], [-3]], [3, 3, 3], tables, [0, 1, 2])
    told = batch_of([[int(t)] for t in chosen], [3, 3, 3], tables, [0, 1, 2])
    np.testing.assert_array_equal(
        model.choose_next(chained, cache, [RowSampling()] * 3).ids(), model.forward(told, cache).argmax(1)
    )


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int8", "float8"))
def test_pages_travel_bit_for_bit(dtype: str) -> None:
    shape = shape_of()
    model = BACKEND.load(shape, weights_of(shape), settings=SETTINGS)
    cache, other = model.make_cache(groups_of(), dtype), model.make_cache(groups_of(), dtype)
    held = cache.nbytes
    model.forward(batch_of([A[:6]], [0], [[[3, 1]], [[3, 1]]], [5]), cache)
    for group in range(2):
        cache.copy_positions(group, 3, 7, 3)
        whole, part = cache.export_page(group, 3, 4), cache.export_page(group, 7, 3)
        assert whole[0].shape == (1, 4, 2, 16) and part[0].shape == (1, 3, 2, 16)
        assert len(whole) == (4 if dtype in ("int8", "float8") else 2)
        other.import_page(group, 5, whole)
        for a, b, c in zip(whole, part, other.export_page(group, 5, 4), strict=True):
            assert a.tobytes() == c.tobytes() and a[:, :3].tobytes() == b.tobytes() and a.any()
        assert not any(array[:, 3:].any() for array in cache.export_page(group, 7, 4))
    assert cache.nbytes == held


def test_an_unsupported_model_runs_on_the_reference_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    shape = shape_of(n_layers=1, head_dim=272, layers=(LayerSpec(RopeSpec(10000.0, 16)),))
    with caplog.at_level(logging.WARNING, logger="kernels.gpu"):
        for _ in range(2):
            model = BACKEND.load(shape, weights_of(shape))
    assert type(model).__name__ == "ReferenceModel"
    assert [record.message for record in caplog.records if "272" in record.message] == [caplog.records[0].message]


def test_settings_are_refused_with_a_sentence() -> None:
    model = BACKEND.load(shape_of(), weights_of(shape_of()), settings=SETTINGS)
    with pytest.raises(KernelError, match="not float64"):
        model.make_cache(groups_of(), "float64")
    with pytest.raises(KernelError, match="window"):
        model.make_cache((CacheGroupSpec((0, 1), 4, 4),))


def test_the_engine_runs_unchanged_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own tiny model: append, generate, fork, truncate give the tokens of the reference."""
    from engine import Sampling
    from kernels.gpu import backend
    from tests.engine.tiny import tiny_engine

    # The engine asks for no settings of the back end's own: fp32 is set where the back end takes its defaults.
    monkeypatch.setattr(backend, "GpuSettings", lambda: SETTINGS)

    def talk(device: str) -> list:
        out: list = []
        with tiny_engine((8, None), device=device) as engine, engine.new_session() as session:
            session.append([5, 6, 7, 8, 9, 10, 11, 12, 13])
            out.append([token.id for token in session.generate(Sampling(max_tokens=3, temperature=0))])
            with session.fork() as fork:
                fork.append([20, 21])
                out.append(list(fork.ids))
                out.append(int(fork.last_logits().argmax()))
            session.truncate(7)
            session.append([30])
            out.append(int(session.last_logits().argmax()))
        return out

    assert pick("cuda") is BACKEND
    assert talk("cuda") == talk("reference")


def test_without_a_card_one_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.gpu import backend

    monkeypatch.setattr(backend, "interpreted", lambda kernel: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KernelError, match="use device cpu"):
        BACKEND.load(shape_of(), weights_of(shape_of()))
