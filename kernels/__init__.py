"""The hot loops: one contract (`kernels.contract`), several back ends, picked by device name."""

from __future__ import annotations

import importlib
from typing import cast

from kernels.contract import Backend, KernelError

_BACKENDS = {
    "cpu": ("kernels.cpu", "BACKEND"),
    "cuda": ("kernels.gpu", "BACKEND"),
    "reference": ("kernels.reference", "BACKEND"),
    "reference-exact": ("kernels.reference", "EXACT"),
}


def pick(device: str) -> Backend:
    """The back end for "cpu", "cuda", "reference" or "reference-exact", imported now and not before.

    Raises `KernelError` for an unknown name or when what the back end needs is not installed.
    """
    if device not in _BACKENDS:
        raise KernelError(f"There is no device {device!r}: use one of {', '.join(sorted(_BACKENDS))}.")
    module_name, attribute = _BACKENDS[device]
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise KernelError(f"Device {device!r} cannot be used here: {error}.") from error
    return cast(Backend, getattr(module, attribute))
