"""One door through which every Triton kernel is started.

Going through one door lets the same model code run on a card, under the interpreter, or against a recorder that only
notes what would be started: the compile table is made by recording a whole step over tensors without storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from triton.runtime.interpreter import InterpretedFunction


@dataclass(frozen=True)
class Launch:
    """One kernel start.  `args` are pointers (tensors) and integers, `constants` are fixed at compile time."""

    kernel: Any
    grid: tuple[int, ...]
    args: dict[str, Any]
    constants: dict[str, Any]
    num_warps: int
    num_stages: int
    max_registers: int | None = None

    @property
    def options(self) -> dict[str, int]:
        """What the compiler is told beside the kernel."""
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        return options if self.max_registers is None else {**options, "maxnreg": self.max_registers}


_recorder: list[Launch] | None = None


def launch(
    kernel: Any,
    grid: tuple[int, ...],
    args: dict[str, Any],
    constants: dict[str, Any],
    num_warps: int = 4,
    num_stages: int = 2,
    max_registers: int | None = None,
) -> None:
    """Start `kernel` over `grid`; nothing happens when a dimension of the grid is 0.

    `max_registers` is for kernels where the assembler, left alone, would spill a few to fit one more block.
    """
    if 0 in grid:
        return
    this = Launch(kernel, grid, args, constants, num_warps, num_stages, max_registers)
    if _recorder is not None:
        _recorder.append(this)
        return
    kernel[grid](**args, **constants, **this.options)


@contextmanager
def recording() -> Iterator[list[Launch]]:
    """Within the block kernels are listed instead of started.  For one thread at a time."""
    global _recorder
    before, _recorder = _recorder, []
    try:
        yield _recorder
    finally:
        _recorder = before


def interpreted(kernel: Any) -> bool:
    """True when TRITON_INTERPRET=1 was set as the kernel's module was imported: it then runs on CPU tensors."""
    return isinstance(kernel, InterpretedFunction)


def power_of_two(n: int, least: int = 1) -> int:
    """The smallest power of two that is at least `n` and `least`."""
    return max(least, 1 << max(n - 1, 0).bit_length())
