"""The list of models in configs/models.yaml and in the user's own models.yaml, read and checked."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from assistant.folders import config_folder
from assistant.models.errors import CatalogueError, UnknownModel
from assistant.resources import config_file

KINDS = ("llm", "asr", "voice", "vad")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class WheelPart:
    """A file inside a package's wheel."""

    requirement: str  # name==version
    member: str


@dataclass(frozen=True)
class HubPart:
    """A file in a repository of a Hugging Face hub."""

    repo: str  # owner/name
    file: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"hf:{self.repo}{'@' + self.revision if self.revision else ''}/{self.file}"


@dataclass(frozen=True)
class LocalPart:
    """A file on this machine."""

    path: Path


Part = WheelPart | HubPart | LocalPart


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its parts, one after the other, give `size` bytes with this checksum (None: not known)."""

    name: str
    parts: tuple[Part, ...]
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class Model:
    """One entry of the catalogue. `entry` is what a loader is given: a file, or "." for the folder."""

    name: str
    kind: str
    about: str
    licence: str
    entry: str
    files: tuple[ModelFile, ...]
    download: int = 0
    default: bool = False

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size or 0 for file in self.files)


@dataclass(frozen=True)
class Catalogue:
    """All known models by name, in the order of the file."""

    models: dict[str, Model]

    def find(self, name: str) -> Model:
        """The model of that name, or the one a `hf:owner/repo/file` describes; UnknownModel names the nearest."""
        if name.startswith("hf:"):
            return hub_model(name)
        if name in self.models:
            return self.models[name]
        by_lower_case = {known.lower(): known for known in self.models}
        near = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.5)
        hint = f"did you mean '{by_lower_case[near[0]]}'? " if near else ""
        raise UnknownModel(f"there is no model '{name}': {hint}`crosstalk models list` shows all names.")

    def defaults(self) -> list[Model]:
        """What a first conversation needs."""
        return [model for model in self.models.values() if model.default]


def load_catalogue(*files: Path) -> Catalogue:
    """Read the given files, or the shipped catalogue and then the user's own; later entries replace earlier ones."""
    models: dict[str, Model] = {}
    for file in files or (config_file("models.yaml"), config_folder() / "models.yaml"):
        if files or file.is_file():
            models.update(_read(file))
    return Catalogue(models)


def hub_model(reference: str) -> Model:
    """The unlisted model that `hf:owner/repo/file` or `hf:owner/repo@revision/file` means; no checksum is known."""
    part = parse_hub(reference.removeprefix("hf:"))
    if part is None:
        raise UnknownModel(f"'{reference}' should read hf:OWNER/REPO/FILE or hf:OWNER/REPO@REVISION/FILE.")
    where = "--".join(("hf", *part.repo.split("/"), *([part.revision] if part.revision else [])))
    file = PurePosixPath(part.file)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", f"{where}--{part.file.replace('/', '--')}")
    kind = "llm" if file.suffix in (".gguf", ".safetensors") else "voice" if file.suffix == ".onnx" else "asr"
    wanted = [part.file, f"{part.file}.json"] if file.suffix == ".onnx" else [part.file]  # piper voices come in twos
    files = tuple(ModelFile(PurePosixPath(w).name, (HubPart(part.repo, w, part.revision),), None, None) for w in wanted)
    return Model(name, kind, f"from {reference}", "see the repository", file.name, files)


def parse_hub(text: str) -> HubPart | None:
    """`owner/repo/file` or `owner/repo@revision/file`; None if it is neither."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w.-]+))?/(.+)", text)
    if not match or ".." in PurePosixPath(match[3]).parts:
        return None
    return HubPart(match[1], match[3], match[2])


def _read(file: Path) -> dict[str, Model]:
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise CatalogueError(f"cannot read the model catalogue {file}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{file} is not valid YAML: {' '.join(str(error).split())}.") from error
    models = content.get("models") if isinstance(content, dict) else None
    if not isinstance(models, dict):
        raise CatalogueError(f"{file} should hold `models:` with one entry a model.")
    return {str(name): _Entry(file, str(name), value).model() for name, value in models.items()}


class _Entry:
    """Turns one YAML entry into a Model; every complaint says which file, model and field."""

    def __init__(self, source: Path, name: str, value: Any) -> None:
        self.source, self.name = source, name
        self.value = self.mapping(value, "the entry")
        if not _NAME.fullmatch(name):
            self.wrong("a name is made of letters, digits, '.', '_' and '-'")

    def wrong(self, what: str) -> Any:
        raise CatalogueError(f"{self.source}, model '{self.name}': {what}.")

    def mapping(self, value: Any, where: str) -> dict[str, Any]:
        return value if isinstance(value, dict) else self.wrong(f"{where} should be a mapping")

    def model(self) -> Model:
        known = {"kind", "about", "licence", "entry", "files", "download", "default"}
        for field in self.value:
            if field not in known:
                near = difflib.get_close_matches(str(field), known, n=1)
                self.wrong(f"unknown field '{field}'" + (f", did you mean '{near[0]}'?" if near else ""))
        kind = str(self.value.get("kind"))
        if kind not in KINDS:
            self.wrong(f"kind should be one of {', '.join(KINDS)}")
        files = self.mapping(self.value.get("files"), "files")
        model_files = tuple(self.file(str(name), value) for name, value in files.items())
        entry = str(self.value.get("entry", "."))
        if not model_files or (entry != "." and entry not in files):
            self.wrong("entry should be '.' or the name of one of its files")
        return Model(
            self.name,
            kind,
            str(self.value.get("about", "")),
            str(self.value.get("licence", "unknown")),
            entry,
            model_files,
            int(self.value.get("download", 0)),
            bool(self.value.get("default", False)),
        )

    def file(self, name: str, value: Any) -> ModelFile:
        if not _NAME.fullmatch(name):
            self.wrong(f"'{name}' should be a plain file name")
        value = self.mapping(value, name)
        parts = value.get("from")
        if not isinstance(parts, list) or not parts:
            self.wrong(f"{name}: `from` should be a list of parts")
        size, sha256 = value.get("size"), value.get("sha256")
        if not (size is None or isinstance(size, int)):
            self.wrong(f"{name}: size should be a number of bytes")
        if not (sha256 is None or re.fullmatch("[0-9a-f]{64}", str(sha256))):
            self.wrong(f"{name}: sha256 should be 64 hexadecimal digits")
        return ModelFile(name, tuple(self.part(name, part) for part in parts), size, sha256)

    def part(self, file: str, value: Any) -> Part:
        value = self.mapping(value, f"{file}: a part")
        match value:
            case {"wheel": str(requirement), "member": str(member)} if "==" in requirement:
                return WheelPart(requirement, member)
            case {"hf": str(text)} if part := parse_hub(text):
                return part
            case {"path": str(path)}:
                return LocalPart((self.source.parent / Path(path).expanduser()).absolute())
        return self.wrong(
            f"{file}: a part is {{wheel: NAME==VERSION, member: FILE}}, {{hf: OWNER/REPO/FILE}} or {{path: FILE}}"
        )
