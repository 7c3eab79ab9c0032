"""The GPU back end's door: weights in, a model out; where a shape is not supported the reference runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import torch

from kernels.contract import KernelError, Model, ModelShape
from kernels.gpu.launch import interpreted
from kernels.gpu.model import GpuModel
from kernels.gpu.rowops import gate_kernel
from kernels.gpu.settings import GpuSettings, unsupported
from kernels.gpu.weights import upload
from kernels.weights import ModelWeights

log = logging.getLogger(__name__)


@dataclass
class GpuBackend:
    """`kernels.contract.Backend` named "cuda"."""

    name: str = "cuda"
    _told: set[str] = field(default_factory=set)

    def load(
        self, shape: ModelShape, weights: ModelWeights, *, threads: int = 1, settings: GpuSettings | None = None
    ) -> Model:
        """Bring the weights to the card.  `threads` counts only when the reference has to run.

        Raises `KernelError` without a card, or when its memory does not hold the weights.
        """
        device = pick_device()
        if reason := unsupported(shape):
            if reason not in self._told:
                self._told.add(reason)
                log.warning(
                    "The GPU kernels do not support this model: %s. The slow reference runs it instead.", reason
                )
            from kernels.reference import BACKEND as REFERENCE

            return REFERENCE.load(shape, weights, threads=threads)
        settings = settings or GpuSettings()
        try:
            return GpuModel(shape, upload(shape, weights, device, settings.compute.torch), settings, device)
        except torch.OutOfMemoryError as error:
            raise KernelError(
                "The card's memory does not hold the weights: choose a smaller model, a 4-bit file or device cpu."
            ) from error


def pick_device() -> torch.device:
    """The current CUDA device, or the CPU when the kernels are interpreted (TRITON_INTERPRET=1)."""
    if interpreted(gate_kernel):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise KernelError("There is no CUDA card here: use device cpu.")
    return torch.device("cuda", torch.cuda.current_device())


BACKEND = GpuBackend()
