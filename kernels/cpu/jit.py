"""Compiles what a model needs, once a machine: compiled code is kept on disk between runs.

The folder is named after everything the code depends on (the sources of this package, Numba, LLVM and the processor),
because Numba itself looks only at the file a function stands in.  `CROSSTALK_KERNEL_CACHE`
moves it.  If it can't be written to, everything is compiled again in each run: slower to start, otherwise the same.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import platformdirs
from llvmlite import binding
from numba import types
from numba.core import config as _config

from kernels.cpu import attend, attention, gemm, phases, plan, team
from kernels.cpu.isa import Isa

config: Any = _config
Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total) before each part is compiled or loaded, and at the end."""

CACHE_VARIABLE = "CROSSTALK_KERNEL_CACHE"
_PHASE = types.void(*[types.int64] * 6)
_KERNEL = types.void(*[types.int64] * 8)
_ATTENTION = types.void(*[types.int64] * 9)
_PHASES = {
    "embed": phases.embed,
    "enter": phases.enter,
    "linear": phases.linear,
    "position": phases.position,
    "attend": attention.attend,
    "gather": attention.gather,
    "gate": phases.gate,
    "head": phases.head,
}


def _tile_kernel(fmt: int, isa: int):
    def tile_kernel(tile, groups, rows, quants, meta, floats, out, out_stride):
        gemm.tile_product(fmt, isa, tile, groups, rows, quants, meta, floats, out, out_stride)

    return tile_kernel


def _scores_kernel(isa: int, store: int):
    def scores_kernel(n, queries, head_dim, keys, key_scales, n_blocks, out, out_stride, ahead):
        attend.scores(isa, store, n, queries, head_dim, keys, key_scales, n_blocks, out, out_stride, ahead)

    return scores_kernel


def _values_kernel(isa: int, store: int):
    def values_kernel(n, weights, weight_stride, values, value_scales, n_positions, head_dim, sums, ahead):
        attend.weighted_values(
            isa, store, n, weights, weight_stride, values, value_scales, n_positions, head_dim, sums, ahead
        )

    return values_kernel


class Library:
    """Compiled parts by name, as addresses; compiled on first use.  One a process and instruction family.

    Only kernels differ between families; phases and the rest are kept in `common`, which all libraries share.
    """

    def __init__(self, isa: Isa, folder: Path | None, common: dict[tuple, object]) -> None:
        self.isa = isa
        self.folder = folder
        self._kept: dict[tuple, object] = {}
        self._common = common
        self._addresses: dict[tuple, int] = {}

    def parts(self, formats: set[gemm.Format], store: attend.Store) -> list[tuple]:
        """Names of all that a model with these weight formats and this kind of cache needs."""
        names: list[tuple] = [("run",), ("plan",)]
        names += [("phase", name) for name in _PHASES]
        names += [("tile", int(f)) for f in sorted(formats)]
        return names + [("scores", int(store)), ("values", int(store))]

    def warm_up(self, names: list[tuple], progress: Progress | None = None) -> None:
        """Compile or load the named parts, telling `progress` before each."""
        missing = [name for name in names if name not in self._kept and name not in self._common]
        for i, name in enumerate(missing):
            if progress is not None:
                progress(" ".join(str(word) for word in name), i, len(missing))
            self.get(name)
        if progress is not None and missing:
            progress("ready", len(missing), len(missing))

    def get(self, name: tuple) -> object:
        """A compiled part; see `address` for the ones that are called from compiled code."""
        kept = self._kept if name[0] in ("tile", "scores", "values") else self._common
        if name not in kept:
            kept[name] = self._compile(name)
        return kept[name]

    def address(self, *name: object) -> int:
        """Address of a phase ("phase", name) or kernel ("tile", format), ("scores", store), ("values", store)."""
        if name not in self._addresses:
            self._addresses[name] = int(self.get(name).address)  # type: ignore[attr-defined]
        return self._addresses[name]

    def _compile(self, name: tuple) -> object:
        cached = self.folder is not None
        before = config.CACHE_DIR
        config.CACHE_DIR = str(self.folder) if cached else before
        try:
            if name[0] == "run":
                return numba.njit(team.RUN_SIGNATURE, nogil=True, cache=cached)(team.run_program)
            if name[0] == "plan":
                return numba.njit(plan.SIGNATURE, nogil=True, cache=cached)(plan.build)
            if name[0] == "phase":
                return numba.cfunc(_PHASE, cache=cached, error_model="numpy")(_PHASES[name[1]])
            maker = {"tile": _tile_kernel, "scores": _scores_kernel, "values": _values_kernel}[name[0]]
            order = (name[1], int(self.isa)) if name[0] == "tile" else (int(self.isa), name[1])
            return numba.cfunc(_KERNEL if name[0] == "tile" else _ATTENTION, cache=cached)(maker(*order))
        finally:
            config.CACHE_DIR = before


def cache_folder() -> Path | None:
    """Where compiled code is kept, created; None if nothing can be kept."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    features = binding.get_host_cpu_features().flatten()
    for fact in (numba.__version__, binding.llvm_version_info, binding.get_host_cpu_name(), features):
        digest.update(str(fact).encode())
    root = os.environ.get(CACHE_VARIABLE) or Path(platformdirs.user_cache_dir("crosstalk")) / "kernels"
    folder = Path(root) / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


_libraries: dict[Isa, Library] = {}
_common: dict[tuple, object] = {}


def library(isa: Isa) -> Library:
    """The process's library for an instruction family."""
    if isa not in _libraries:
        _libraries[isa] = Library(isa, cache_folder(), _common)
    return _libraries[isa]
