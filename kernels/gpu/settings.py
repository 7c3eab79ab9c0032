"""Settings of the GPU back end, and which models it can run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch

from kernels.contract import ModelShape


class Compute(Enum):
    """The type of activations between kernels and of dense weights; sums and the residual are always fp32."""

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"

    @property
    def torch(self) -> torch.dtype:
        """The same as a torch dtype."""
        return {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}[self.value]


@dataclass(frozen=True)
class GpuSettings:
    """How the back end works; the defaults are chosen by counting bytes and have not been tuned on a card."""

    compute: Compute = Compute.BFLOAT16
    graphs: bool = True
    """Replay decode steps from CUDA graphs; False starts every kernel by itself."""
    batch_invariant: bool = False
    """True: one row goes through the kernels of 2 to 16 rows, so that its bits do not depend on the batch."""
    split: int = 256
    """Positions of one piece of a split context; a power of two."""
    share: bool = True
    """Read pages that several sequences hold once for all of them where that saves more than a launch costs."""
    prefill_rows: int = 64
    """Sequences with more new rows than this are walked over instead of split."""
    launch_bytes: int = 4 << 20
    """Bytes the card could read in the time of one launch."""


def unsupported(shape: ModelShape) -> str | None:
    """Why these kernels cannot run a model, or None when they can."""
    if shape.head_dim > 256:
        return f"heads of {shape.head_dim} values are wider than 256"
    if shape.n_heads // shape.n_kv_heads > 64:
        return f"{shape.n_heads // shape.n_kv_heads} query heads share one key/value head, more than 64"
    if shape.hidden > 32768:
        return f"rows of {shape.hidden} values are wider than 32768"
    if any(layer.rope.dim > shape.head_dim or layer.rope.dim % 2 for layer in shape.layers):
        return "the rotary embedding turns an odd number of values or more than a head has"
    return None
