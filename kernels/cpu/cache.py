"""The pages: keys and values of every layer, in the layout that attention reads (attend.py)."""

from __future__ import annotations

import numpy as np

from kernels.contract import CacheGroupSpec, KernelError, ModelShape
from kernels.cpu.attend import WIDTH, Store

STORES = {"float16": Store.F16, "float32": Store.F32, "int8": Store.I8}
_TYPES = {Store.F16: np.float16, Store.F32: np.float32, Store.I8: np.int8}


class CpuCache:
    """Pages of all groups.

    Per group: keys [layers, pages, kv_heads, blocks, head_dim, 16], where position p of a page is lane p % 16 of block
    p // 16, and values [layers, pages, kv_heads, page_size, head_dim].  int8 adds float32 scales per position and head:
    key_scales [layers, pages, kv_heads, blocks * 16] and value_scales [layers, pages, kv_heads, page_size].
    """

    def __init__(self, shape: ModelShape, groups: tuple[CacheGroupSpec, ...], dtype: str) -> None:
        if dtype not in STORES:
            raise KernelError(f"The CPU back end keeps {', '.join(STORES)} pages, not {dtype}.")
        self.groups = groups
        self.dtype = dtype
        self.store = STORES[dtype]
        kind = _TYPES[self.store]
        heads, d = shape.n_kv_heads, shape.head_dim
        self.keys, self.values = [], []
        self.key_scales: list[np.ndarray] = []
        self.value_scales: list[np.ndarray] = []
        try:
            for spec in groups:
                blocks = -(-spec.page_size // WIDTH)
                outer = (len(spec.layers), spec.n_pages, heads)
                self.keys.append(np.zeros((*outer, blocks, d, WIDTH), kind))
                self.values.append(np.zeros((*outer, spec.page_size, d), kind))
                if self.store is Store.I8:
                    self.key_scales.append(np.zeros((*outer, blocks * WIDTH), np.float32))
                    self.value_scales.append(np.zeros((*outer, spec.page_size), np.float32))
        except MemoryError as error:
            raise KernelError("There is not enough memory for the cache: use fewer pages.") from error

    @property
    def nbytes(self) -> int:
        kinds = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(array.nbytes for arrays in kinds for array in arrays)

    def copy_positions(self, group: int, src_page: int, dst_page: int, n: int) -> None:
        keys = self.keys[group]
        whole, rest = divmod(n, WIDTH)
        keys[:, dst_page, :, :whole] = keys[:, src_page, :, :whole]
        if rest:
            keys[:, dst_page, :, whole, :, :rest] = keys[:, src_page, :, whole, :, :rest]
        self.values[group][:, dst_page, :, :n] = self.values[group][:, src_page, :, :n]
        if self.store is Store.I8:
            for scales in (self.key_scales[group], self.value_scales[group]):
                scales[:, dst_page, :, :n] = scales[:, src_page, :, :n]

    def export_page(self, group: int, page: int, n: int) -> tuple[np.ndarray, ...]:
        """(keys, values) [layers, n, kv_heads, head_dim]; int8 adds their scales [layers, n, kv_heads]."""
        keys = self.keys[group][:, page].transpose(0, 2, 4, 1, 3)  # [layers, blocks, 16, kv_heads, head_dim]
        keys = keys.reshape(keys.shape[0], -1, *keys.shape[3:])[:, :n]
        values = self.values[group][:, page, :, :n].transpose(0, 2, 1, 3)
        out = [np.ascontiguousarray(keys), np.ascontiguousarray(values)]
        if self.store is Store.I8:
            for scales in (self.key_scales[group], self.value_scales[group]):
                out.append(np.ascontiguousarray(scales[:, page, :, :n].transpose(0, 2, 1)))
        return tuple(out)

    def import_page(self, group: int, page: int, arrays: tuple[np.ndarray, ...]) -> None:
        keys, values = arrays[:2]
        n = keys.shape[1]
        target = self.keys[group][:, page]
        for block in range(-(-n // WIDTH)):
            part = keys[:, block * WIDTH : (block + 1) * WIDTH]
            target[:, :, block, :, : part.shape[1]] = part.transpose(0, 2, 3, 1)
        self.values[group][:, page, :, :n] = values.transpose(0, 2, 1, 3)
        if self.store is Store.I8:
            for scales, given in zip((self.key_scales[group], self.value_scales[group]), arrays[2:], strict=True):
                scales[:, page, :, :n] = given.transpose(0, 2, 1)
