"""From a file on disk to a shape, weights and a vocabulary: no arithmetic, no torch."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelFileError
from engine.loading.model_file import ModelFile, Vocabulary

__all__ = ["ModelFile", "Vocabulary", "read_model"]


def read_model(path: str | Path) -> ModelFile:
    """Read a GGUF file or a Hugging Face folder with safetensors; large arrays stay memory-mapped.

    Raises `ModelFileError` naming what is missing or wrong, `UnsupportedModelError` for unknown architectures.
    """
    path = Path(path)
    if not path.exists():
        raise ModelFileError(f"There is no model at {path}.")
    if path.is_dir():
        from engine.loading.hf_folder import read_folder

        return read_folder(path)
    from engine.loading.gguf_model import read_gguf

    return read_gguf(path)
