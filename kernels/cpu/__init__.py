"""The CPU back end: Numba kernels over packed 4- and 8-bit weights.  See kernels/README.md."""

from __future__ import annotations

from kernels.cpu.backend import BACKEND, CpuBackend, warm_up

__all__ = ["BACKEND", "CpuBackend", "warm_up"]
