"""What a loader hands to the rest of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kernels.contract import ModelShape
from kernels.weights import ModelWeights


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer as the model file describes it: either parts (GGUF) or a ready `tokenizer.json`.

    `kind` is "bpe" (byte-level) or "spm" (SentencePiece pieces with scores).  `types` follow GGUF: 1 normal,
    2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    """

    tokens: tuple[str, ...] = ()
    kind: str = "bpe"
    pre: str = "default"
    merges: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    types: tuple[int, ...] = ()
    json_file: Path | None = None
    add_space_prefix: bool = False
    add_bos: bool = False
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    stop_tokens: tuple[int, ...] = field(default=())


@dataclass(frozen=True)
class ModelFile:
    """A model read but not yet packed for a back end.

    `fingerprint` is a digest of the file's header and of samples of its weights: equal files give equal prints on any
    machine, and a session saved under one print is refused under another.
    """

    path: Path
    name: str
    architecture: str
    shape: ModelShape
    weights: ModelWeights
    vocabulary: Vocabulary
    chat_template: str | None
    context_length: int
    fingerprint: str
