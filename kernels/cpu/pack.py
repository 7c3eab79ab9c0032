"""Lays runtime weights out in tiles of 16 outputs (the layout is drawn in kernels/README.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.contract import KernelError
from kernels.cpu.arena import Arena
from kernels.cpu.gemm import GROUP, TILE, Format
from kernels.formats import Dense, Grouped4, Grouped8, runtime_format
from kernels.weights import WeightTensor


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix ready for the kernels.  `data` is uint8, contiguous; rows are padded with zeros to whole tiles."""

    format: Format
    rows: int
    cols: int
    data: np.ndarray

    @property
    def groups(self) -> int:
        return self.cols // GROUP

    @property
    def tiles(self) -> int:
        return -(-self.rows // TILE)

    @property
    def tile_bytes(self) -> int:
        return self.format.tile_bytes(self.cols)


def choose(tensor: WeightTensor) -> Grouped4 | Grouped8 | Dense:
    """Runtime form of a tensor, checked for what the kernels can take."""
    if tensor.cols % GROUP:
        raise KernelError(f"A weight matrix has {tensor.cols} inputs; the CPU back end needs a multiple of {GROUP}.")
    return runtime_format(tensor)


def format_of(weights: Grouped4 | Grouped8 | Dense) -> Format:
    """The kernel format that keeps the weights exactly."""
    if isinstance(weights, Grouped4):
        return Format.Q4H if weights.scales.dtype == np.float16 else Format.Q4F
    if isinstance(weights, Grouped8):
        return Format.Q8H if weights.scales.dtype == np.float16 else Format.Q8F
    if weights.bf16:
        return Format.BF16
    return Format.F16 if weights.values.dtype == np.float16 else Format.F32


def pack(tensor: WeightTensor, arena: Arena) -> PackedMatrix:
    """Copy one matrix into tiles, in memory of the arena."""
    weights = choose(tensor)
    fmt = format_of(weights)
    tiles = -(-tensor.rows // TILE)
    data = arena.take(tiles * fmt.tile_bytes(tensor.cols))
    groups = tensor.cols // GROUP
    if isinstance(weights, Dense):
        values = data.view(weights.values.dtype).reshape(tiles, tensor.cols, TILE)
        _fill(values, weights.values)
    else:
        scale = np.dtype("<f2" if fmt.scale_bytes == 2 else "<f4")
        if isinstance(weights, Grouped4):
            layout = np.dtype([("q", "<u4", (4, TILE)), ("d", scale, (TILE,)), ("m", scale, (TILE,))])
            quads = np.ascontiguousarray(weights.packed).view("<u4")
        else:
            layout = np.dtype([("q", "<u4", (8, TILE)), ("d", scale, (TILE,))])
            quads = (weights.quants.view(np.uint8) ^ np.uint8(128)).view("<u4")
        cells = data.view(layout).reshape(tiles, groups)
        _fill_quads(cells["q"], quads)
        _fill(cells["d"], weights.scales)
        if isinstance(weights, Grouped4):
            _fill(cells["m"], weights.minima)
    return PackedMatrix(fmt, tensor.rows, tensor.cols, data)


def _fill(target: np.ndarray, rows: np.ndarray) -> None:
    """rows [n, c] -> target [tiles, c, 16]."""
    whole = len(rows) // TILE
    target[:whole] = rows[: whole * TILE].reshape(whole, TILE, -1).transpose(0, 2, 1)
    if whole * TILE < len(rows):
        rest = rows[whole * TILE :]
        target[whole, :, : len(rest)] = rest.T


def _fill_quads(target: np.ndarray, quads: np.ndarray) -> None:
    """quads [n, groups, j] of four bytes each -> target [tiles, groups, j, 16]."""
    whole = len(quads) // TILE
    shaped = quads[: whole * TILE].reshape(whole, TILE, *quads.shape[1:])
    target[:whole] = shaped.transpose(0, 2, 3, 1)
    if whole * TILE < len(quads):
        rest = quads[whole * TILE :]
        target[whole, :, :, : len(rest)] = rest.transpose(1, 2, 0)


def unpack_row(matrix: PackedMatrix, row: int) -> np.ndarray:
    """One row back as float32 [cols] (plain numpy; what the embedding kernel is tested against)."""
    tile, lane = divmod(row, TILE)
    cell = matrix.data[tile * matrix.tile_bytes : (tile + 1) * matrix.tile_bytes]
    fmt = matrix.format
    if not fmt.integer:
        kind = {Format.BF16: np.uint16, Format.F16: np.float16, Format.F32: np.float32}[fmt]
        return Dense(cell.view(kind).reshape(matrix.cols, TILE)[:, lane], fmt is Format.BF16).dequantize()
    scale = np.float16 if fmt.scale_bytes == 2 else np.float32
    parts = cell.reshape(matrix.groups, fmt.group_bytes)
    if fmt in (Format.Q4H, Format.Q4F):
        quads = parts[:, :256].reshape(-1, 4, TILE, 4)[:, :, lane].reshape(-1, 16)
        scales = parts[:, 256:].copy().view(scale)
        return Grouped4(quads[None], scales[None, :, lane], scales[None, :, TILE + lane]).dequantize()[0]
    quads = parts[:, :512].reshape(-1, 8, TILE, 4)[:, :, lane].reshape(-1, 32)
    quants = (quads ^ np.uint8(128)).view(np.int8)
    return Grouped8(quants[None], parts[:, 512:].copy().view(scale)[None, :, lane]).dequantize()[0]
