"""Triton's interpreter, made ready before any kernel is imported."""

from __future__ import annotations

import os

import numpy as np


def enable() -> None:
    """Run kernels that are imported from now on in numpy, on CPU tensors.

    Two of the interpreter's lines are mended. Before 3.9 it turns loop bounds into Python numbers in a way that numpy
    2.4 refuses (an array of one element is no scalar any more). Up to 3.9 it holds bf16 as 16-bit integers and
    multiplies those integers in `tl.dot`.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    from triton.runtime import interpreter

    if getattr(interpreter, "_mended", False):
        return
    interpreter._mended = True
    patch, multiply = interpreter._patch_lang_tensor, interpreter.InterpreterBuilder.create_dot

    def patched(tensor, *rest):
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    def dot(self, a, b, *rest):
        return multiply(self, _widened(a), _widened(b), *rest)

    interpreter._patch_lang_tensor = patched
    interpreter.InterpreterBuilder.create_dot = dot


def _widened(handle):
    """A bf16 operand as fp32, anything else as it is."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    if handle.dtype.scalar is not tl.bfloat16 or handle.data.dtype != np.uint16:
        return handle
    return TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)
