"""The door of the CPU back end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.contract import KernelError, ModelShape
from kernels.cpu.arena import Arena
from kernels.cpu.cache import STORES
from kernels.cpu.isa import Isa, detect
from kernels.cpu.jit import Progress, library
from kernels.cpu.model import MATRIX_NAMES, CpuModel, PackedLayer
from kernels.cpu.pack import choose, format_of, pack
from kernels.weights import LayerWeights, ModelWeights, WeightTensor


def warm_up(weights: ModelWeights, progress: Progress | None = None, *, dtype: str = "float16",
            isa: Isa | None = None) -> None:
    """Compile (or load) everything that this model needs, telling `progress` what and how far."""
    tensors = [weights.embed, *([weights.lm_head] if weights.lm_head is not None else [])]
    tensors += [getattr(layer, name) for layer in weights.layers for name in MATRIX_NAMES]
    # Some rows tell the format of all; if fp16 holds their scales but not all others', one kernel is compiled later.
    formats = {format_of(choose(_some_rows(tensor))) for tensor in tensors}
    lib = library(isa or detect())
    lib.warm_up(lib.parts(formats, STORES[dtype]), progress)


def _some_rows(tensor: WeightTensor) -> WeightTensor:
    rows = min(tensor.rows, 64)
    return WeightTensor(tensor.data[:rows], rows, tensor.cols, tensor.gguf_type)


def _pack_layer(layer: LayerWeights, arena: Arena) -> PackedLayer:
    vectors = {name: value for name, value in vars(layer).items() if isinstance(value, np.ndarray)}
    return PackedLayer(tuple(pack(getattr(layer, name), arena) for name in MATRIX_NAMES), vectors)


@dataclass(frozen=True)
class CpuBackend:
    """Numba kernels for the processor this runs on."""

    name: str = "cpu"

    def load(self, shape: ModelShape, weights: ModelWeights, *, threads: int = 1, progress: Progress | None = None,
             isa: Isa | None = None) -> CpuModel:
        """Pack the weights (copied; the raw ones may go) and compile what is missing.

        `threads`: how many work on a step, the caller included.  `progress(what, done, total)` is told about
        compilation.  `isa` chooses another instruction family than the best one (for tests).
        """
        if threads < 1:
            raise KernelError("The number of threads must be at least 1.")
        if shape.head_dim % 16 or shape.n_heads * shape.head_dim % 32:
            raise KernelError(f"The CPU back end needs a head size that is a multiple of 16, not {shape.head_dim}.")
        arena = Arena()
        # In the order in which a step reads them.
        layers = tuple(_pack_layer(layer, arena) for layer in weights.layers)
        embed = pack(weights.embed, arena)
        head = embed if weights.lm_head is None else pack(weights.lm_head, arena)
        formats = {m.format for layer in layers for m in layer.matrices} | {embed.format, head.format}
        lib = library(isa or detect())
        lib.warm_up(lib.parts(formats, STORES["float16"]), progress)
        return CpuModel(shape, embed, head, layers, np.asarray(weights.final_norm, np.float32), lib, threads)


BACKEND = CpuBackend()
