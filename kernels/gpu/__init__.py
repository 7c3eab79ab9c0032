"""The GPU back end: Triton kernels and CUDA graphs.  See README.md for the map."""

from kernels.gpu.backend import BACKEND
from kernels.gpu.settings import Compute, GpuSettings

__all__ = ["BACKEND", "Compute", "GpuSettings"]
