"""The catalogue: the shipped one is complete, and a wrong one says where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.models import load_catalogue
from assistant.models.catalogue import HubPart, WheelPart, hub_model
from assistant.models.errors import CatalogueError, UnknownModel
from assistant.resources import config_file


def test_every_shipped_file_is_pinned() -> None:
    catalogue = load_catalogue(config_file("models.yaml"))
    assert {model.kind for model in catalogue.defaults()} == {"llm", "asr", "voice"}
    for model in catalogue.models.values():
        assert model.licence and model.about and model.download > 0
        for file in model.files:
            assert file.sha256 and file.size
            assert all(isinstance(part, WheelPart) and "==" in part.requirement for part in file.parts)


def test_the_users_catalogue_adds_to_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSTALK_CONFIG", str(tmp_path))
    text = "models: {mine: {kind: llm, entry: a.gguf, files: {a.gguf: {from: [{hf: me/r@v1/q/a.gguf}]}}}}"
    (tmp_path / "models.yaml").write_text(text)
    catalogue = load_catalogue()
    assert "smollm2-135m" in catalogue.models
    assert catalogue.find("mine").files[0].parts == (HubPart("me/r", "q/a.gguf", "v1"),)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("models: [", "is not valid YAML"),
        ("[1, 2]", "should hold `models:`"),
        ("models: {m: 3}", "model 'm': the entry should be a mapping"),
        ("models: {m: {kind: llama, files: {}}}", "kind should be one of llm"),
        ("models: {m: {kind: llm, licenze: MIT, files: {}}}", "unknown field 'licenze', did you mean 'licence'?"),
        ("models: {m: {kind: llm, entry: x, files: {a: {from: [{path: a}]}}}}", "entry should be '.'"),
        ("models: {m: {kind: llm, files: {a: {from: []}}}}", "`from` should be a list"),
        ("models: {m: {kind: llm, files: {a: {from: [{wheel: w, member: x}]}}}}", "a part is {wheel: NAME==VERSION"),
        ("models: {m: {kind: llm, files: {a: {sha256: 12, from: [{path: a}]}}}}", "64 hexadecimal digits"),
        ("models: {m: {kind: llm, files: {../a: {from: [{path: a}]}}}}", "plain file name"),
        ("models: {../m: {kind: llm, files: {a: {from: [{path: a}]}}}}", "a name is made of"),
    ],
)
def test_a_wrong_catalogue_says_where(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(text)
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(file)
    assert complaint in str(caught.value) and str(file) in str(caught.value)


def test_hub_references() -> None:
    model = hub_model("hf:owner/repo/sub/voice.onnx")
    assert [file.name for file in model.files] == ["voice.onnx", "voice.onnx.json"]
    assert hub_model("hf:o/r@v2/a.gguf").name != hub_model("hf:o/r/a.gguf").name
    with pytest.raises(UnknownModel):
        load_catalogue().find("hf:owner/repo")
