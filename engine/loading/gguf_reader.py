"""The `gguf` package's reader with long string arrays read in one pass.

The package builds two NumPy views for every string of the vocabulary; 262,144 tokens and half a million merges take
eleven seconds that way and a few tenths this way.  Everything else, tensors above all, is the package's own work.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType, ReaderField

from engine.errors import ModelFileError

_LENGTH = struct.Struct("<Q")


class QuickReader(GGUFReader):
    """A `GGUFReader` whose array fields hold one raw part each; read them with `value()`."""

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
        if GGUFValueType(raw_type) is not GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        kind = GGUFValueType(int(self._get(orig_offs, np.uint32)[0]))
        count = int(self._get(orig_offs + 4, np.uint64)[0])
        start = orig_offs + 12
        if kind is GGUFValueType.STRING:
            end = start
            view = self.data.data
            for _ in range(count):
                end += 8 + _LENGTH.unpack_from(view, end)[0]
        elif kind in self.gguf_scalar_to_np:
            end = start + count * np.dtype(self.gguf_scalar_to_np[kind]).itemsize
        else:
            return super()._get_field_parts(orig_offs, raw_type)
        if end > len(self.data):
            raise ValueError("an array runs past the end of the file")
        return end - orig_offs, [self.data[start:end]], [0], [GGUFValueType.ARRAY, kind]

    def value(self, key: str, default: Any = None) -> Any:
        """A metadata value as Python objects, `default` when the key is absent."""
        field = self.fields.get(key)
        if field is None:
            return default
        if len(field.types) == 2 and field.types[0] is GGUFValueType.ARRAY and len(field.data) == 1:
            return self._array(field)
        return field.contents()

    def _array(self, field: ReaderField) -> list[Any]:
        raw, kind = field.parts[field.data[0]], field.types[1]
        if kind is not GGUFValueType.STRING:
            return raw.view(self.gguf_scalar_to_np[kind]).tolist()
        data, strings, at = raw.tobytes(), [], 0
        while at < len(data):
            length = _LENGTH.unpack_from(data, at)[0]
            strings.append(data[at + 8 : at + 8 + length].decode("utf-8"))
            at += 8 + length
        return strings


def open_gguf(path: Path) -> QuickReader:
    """Open and check a GGUF file; `ModelFileError` in one line if it cannot be one."""
    try:
        return QuickReader(path)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # the package meets damage with whatever NumPy or struct raise
        raise ModelFileError(f"{path} is not a sound GGUF file: {error or type(error).__name__}.") from error
