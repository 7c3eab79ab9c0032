"""Triton's interpreter, made ready before any kernel is imported."""

from __future__ import annotations

import os


def enable() -> None:
    """Run kernels that are imported from now on in numpy, on CPU tensors.

    Triton before 3.9 turns loop bounds into Python numbers in a way that numpy 2.4 refuses (an array of one element is
    no scalar any more); the same line as in 3.9 is put in its place.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    from triton.runtime import interpreter

    if getattr(interpreter, "_patch_lang_tensor_mended", False):
        return
    patch = interpreter._patch_lang_tensor

    def mended(tensor, *rest):
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    interpreter._patch_lang_tensor = mended
    interpreter._patch_lang_tensor_mended = True
