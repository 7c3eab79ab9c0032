"""Each family against transformers: small random models, saved as folders and as GGUF, float32."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine import Engine, EngineSettings, ModelFileError, UnsupportedModelError
from engine.loading import read_model
from tests.engine.gguf_files import write_gguf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

COMMON = dict(
    vocab_size=97,
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    attn_implementation="eager",
    rms_norm_eps=1e-5,
)


def config(name: str):
    t = transformers
    if name == "llama":
        return t.LlamaConfig(**COMMON)
    if name == "llama3-rope":
        scaling = {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
        return t.LlamaConfig(**COMMON, rope_parameters=scaling)
    if name == "linear-rope":
        return t.LlamaConfig(**COMMON, rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0})
    if name == "mistral":
        return t.MistralConfig(**COMMON, sliding_window=16)
    if name == "qwen2":
        return t.Qwen2Config(**COMMON)
    if name == "qwen3":
        return t.Qwen3Config(**COMMON, head_dim=24)
    if name in ("gemma3", "gemma3-24"):
        kinds = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
        scalar = 20 if name == "gemma3" else 24
        return t.Gemma3TextConfig(
            **COMMON, head_dim=24, sliding_window=16, layer_types=kinds, query_pre_attn_scalar=scalar
        )
    raise AssertionError(name)


NAMES = ["llama", "llama3-rope", "linear-rope", "mistral", "qwen2", "qwen3", "gemma3"]


def build(name: str):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config(name), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Initial weights are so small that a wrong norm or bias would hide; make everything count.
            parameter.copy_(torch.randn_like(parameter) * (0.15 if parameter.dim() > 1 else 0.3))
    return model


def write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models

    Tokenizer(models.BPE(vocab={chr(33 + i): i for i in range(90)}, merges=[])).save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def get(name: str):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            model = build(name)
            model.save_pretrained(folder)
            write_tokenizer(folder)
            made[name] = (folder, model)
        return made[name]

    return get


def reference(model, ids: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0].numpy()


def settings(**changes) -> EngineSettings:
    values = dict(
        device="reference", kv_dtype="float32", page_size=8, memory_bytes=8 << 20, prefill_chunk=11, window_slack=8
    )
    return EngineSettings(**(values | changes))


IDS = [int(i) for i in np.random.default_rng(5).integers(0, 97, 120)]


@pytest.mark.parametrize("name", NAMES)
def test_prefill_decode_truncate_and_load_agree_with_transformers(folders, name, tmp_path):
    folder, model = folders(name)
    expected = reference(model, IDS)
    with Engine.load(folder, settings()) as engine:
        whole = engine.new_session(IDS[:100])
        assert np.abs(whole.last_logits() - expected[99]).max() < 1e-4
        for i in range(100, 108):
            whole.append([IDS[i]])
            assert np.abs(whole.last_logits() - expected[i]).max() < 1e-4
        whole.truncate(60)
        assert np.abs(whole.last_logits() - expected[59]).max() < 1e-4
        whole.append(IDS[60:90])
        assert np.abs(whole.last_logits() - expected[89]).max() < 1e-4
        whole.save(tmp_path / "s.safetensors")
    with Engine.load(folder, settings(page_size=16)) as engine:
        loaded = engine.load_session(tmp_path / "s.safetensors")
        assert loaded.ids == IDS[:90]
        loaded.append(IDS[90:])
        assert np.abs(loaded.last_logits() - expected[119]).max() < 1e-4
        assert loaded.stats.forwarded == 31


# GGUF has no field for another query scale than 1 / sqrt(head_dim).
@pytest.mark.parametrize("name", [*NAMES[:-1], "gemma3-24"])
def test_the_same_weights_as_gguf(folders, name, tmp_path):
    folder, model = folders(name)
    path = tmp_path / "model.gguf"
    write_gguf(path, read_model(folder))
    with Engine.load(path, settings()) as engine:
        session = engine.new_session(IDS)
        assert np.abs(session.last_logits() - reference(model, IDS)[-1]).max() < 1e-4
        with Engine.load(folder, settings()) as other:
            assert np.abs(other.new_session(IDS).last_logits() - session.last_logits()).max() < 1e-5


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_folders(folders, dtype, tmp_path):
    folder, model = folders("llama")
    half = build("llama").to(getattr(torch, dtype))
    half.save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    with Engine.load(tmp_path, settings()) as engine:
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
        expected = reference(again, IDS)
        assert np.abs(engine.new_session(IDS).last_logits() - expected[-1]).max() < 1e-4


def test_errors_name_what_is_wrong(folders, tmp_path):
    folder, _ = folders("llama")
    with pytest.raises(ModelFileError, match="no model at"):
        Engine.load(tmp_path / "nothing")
    (tmp_path / "a").mkdir()
    with pytest.raises(ModelFileError, match=r"lacks config\.json"):
        Engine.load(tmp_path / "a")
    other = tmp_path / "b"
    other.mkdir()
    (other / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with pytest.raises(UnsupportedModelError, match="mamba.*llama"):
        Engine.load(other)
    (other / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(ModelFileError, match="no safetensors"):
        Engine.load(other)
    whole = (folder / "model.safetensors").read_bytes()
    (other / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match="past the end"):
        Engine.load(other)
    (other / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(ModelFileError, match="not a sound safetensors"):
        Engine.load(other)


def test_gguf_errors_name_what_is_wrong(folders, tmp_path):
    file = read_model(folders("llama")[0])
    good = tmp_path / "good.gguf"
    write_gguf(good, file)
    raw = good.read_bytes()
    cases = {
        "lacks the tensor blk.1.ffn_up.weight": lambda p: write_gguf(p, file, drop="blk.1.ffn_up.weight"),
        "architecture 'rwkv7' is not supported": lambda p: write_gguf(p, file, arch="rwkv7"),
        "not a sound GGUF file": lambda p: p.write_bytes(raw[: len(raw) - 5000]),
        "sound GGUF": lambda p: p.write_bytes(b"not a model at all, only text"),
        "GGUF": lambda p: p.write_bytes(b""),
    }
    for i, (message, make) in enumerate(cases.items()):
        path = tmp_path / f"{i}.gguf"
        make(path)
        with pytest.raises(ModelFileError) as caught:
            Engine.load(path)
        assert message in str(caught.value) and "\n" not in str(caught.value)


def test_the_quick_reader_reads_what_the_package_reads(folders, tmp_path):
    from gguf import GGUFReader

    from engine.loading.gguf_reader import open_gguf

    path = tmp_path / "m.gguf"
    write_gguf(path, read_model(folders("llama")[0]))
    quick, plain = open_gguf(path), GGUFReader(path)
    for key, field in plain.fields.items():
        assert quick.value(key) == field.contents(), key
    assert [t.name for t in quick.tensors] == [t.name for t in plain.tensors]
