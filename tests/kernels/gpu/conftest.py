"""Kernels in this folder's tests are interpreted unless there is a card and TRITON_INTERPRET is set to 0."""

from __future__ import annotations

import os

from tests.kernels.gpu.interpreter import enable

if os.environ.get("TRITON_INTERPRET") != "0":
    enable()
