"""Safetensors files as memory-mapped arrays, bfloat16 included, without torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.errors import ModelFileError

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class Stored(NamedTuple):
    """A tensor of the file: bfloat16 values are raw uint16."""

    array: np.ndarray
    dtype: str


def read_safetensors(path: Path) -> dict[str, Stored]:
    """All tensors of one file, as views of it.  The library's NumPy front end has no bfloat16, hence this reader."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > size - 8:
                raise ValueError("the header runs past the end of the file")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else np.zeros(0, np.uint8)
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            if entry["dtype"] not in _TYPES:
                raise ValueError(f"the tensor {name} has the unknown type {entry['dtype']}")
            if end > len(data):
                raise ValueError(f"the tensor {name} runs past the end of the file")
            array = data[begin:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = Stored(array, entry["dtype"])
        return tensors
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise ModelFileError(f"{path} is not a sound safetensors file: {error}.") from error
