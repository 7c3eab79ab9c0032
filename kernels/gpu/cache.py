"""The pages on the card: one tensor a group, keys and values of a kv head of a page in one stretch."""

from __future__ import annotations

import numpy as np
import torch

from kernels.contract import CacheGroupSpec, KernelError, ModelShape
from kernels.gpu.attention import Pages

STORED = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int8": torch.int8,
    "float8": torch.float8_e4m3fn,
}
"""What a page may hold.  "int8" and "float8" (e4m3) have a float32 scale for each position and kv head."""

QUANT = {"int8": 1, "float8": 2}

_RAW = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.uint8}
"""Types numpy lacks travel as their bits."""


class GpuCache:
    """Pages [2, layers, n_pages, kv_heads, page_size, head_dim]; scales the same without head_dim.

    A page of a kv head is contiguous (page_size * head_dim values), which is what one program of the attention
    kernel reads.
    """

    def __init__(self, shape: ModelShape, groups: tuple[CacheGroupSpec, ...], dtype: str, device: torch.device) -> None:
        if dtype not in STORED:
            raise KernelError(f"The GPU keeps pages as {', '.join(STORED)}, not {dtype}.")
        if dtype == "float8" and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
            raise KernelError("This card has no 8-bit floats: keep the pages as int8.")
        self.groups = groups
        self.dtype = dtype
        self.slot = {layer: (g, i) for g, spec in enumerate(groups) for i, layer in enumerate(spec.layers)}
        self.pages: list[torch.Tensor] = []
        self.scales: list[torch.Tensor | None] = []
        try:
            for spec in groups:
                size = (2, len(spec.layers), spec.n_pages, shape.n_kv_heads, spec.page_size, shape.head_dim)
                self.pages.append(torch.zeros(size, dtype=STORED[dtype], device=device))
                self.scales.append(
                    torch.zeros(size[:-1], dtype=torch.float32, device=device) if dtype in QUANT else None
                )
        except torch.OutOfMemoryError as error:
            raise KernelError(
                "The card's memory does not hold the cache: ask for less memory or a smaller cache type."
            ) from error

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in (*self.pages, *self.scales) if part is not None)

    @property
    def quant(self) -> int:
        """The kernels' number for the stored type: 0 plain, 1 int8, 2 float8."""
        return QUANT.get(self.dtype, 0)

    @property
    def query_dtype(self) -> torch.dtype:
        """The type in which queries meet keys: that of the pages, fp16 for 8-bit ones (they are exact in it)."""
        return STORED[self.dtype] if self.quant == 0 else torch.float16

    def layer(self, number: int) -> Pages:
        """Views of one layer's pages and scales."""
        group, index = self.slot[number]
        pages, scales = self.pages[group], self.scales[group]
        if scales is None:
            return Pages(pages[0, index], pages[1, index])
        return Pages(pages[0, index], pages[1, index], scales[0, index], scales[1, index])

    def copy_positions(self, group: int, src_page: int, dst_page: int, n: int) -> None:
        """Copy the first `n` positions over those of another page; ordered after all work already started."""
        for part in (self.pages[group], self.scales[group]):
            if part is not None:
                raw = part.view(torch.uint8) if part.dtype == torch.float8_e4m3fn else part
                raw[:, :, dst_page, :, :n] = raw[:, :, src_page, :, :n]

    def export_page(self, group: int, page: int, n: int) -> tuple[np.ndarray, ...]:
        """(keys, values) [layers, n, kv_heads, head_dim], then (key scales, value scales) [layers, n, kv_heads].

        bf16 comes as int16 and float8 as uint8 bits.
        """
        arrays: list[np.ndarray] = []
        for part in (self.pages[group], self.scales[group]):
            if part is None:
                continue
            raw = part.view(_RAW[part.dtype]) if part.dtype in _RAW else part
            both = raw[:, :, page, :, :n].transpose(2, 3).contiguous().cpu().numpy()
            arrays += [both[0].copy(), both[1].copy()]
        return tuple(arrays)

    def import_page(self, group: int, page: int, arrays: tuple[np.ndarray, ...]) -> None:
        """Write what `export_page` returned."""
        for start, part in ((0, self.pages[group]), (2, self.scales[group])):
            if part is None:
                continue
            raw = part.view(_RAW[part.dtype]) if part.dtype in _RAW else part
            for kind in range(2):
                array = torch.from_numpy(np.array(arrays[start + kind], order="C")).to(raw.device)
                raw[kind, :, page, :, : array.shape[1]] = array.transpose(1, 2)
