"""One physical page's bookkeeping, and the chained hash that names its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

Hash = bytes
ROOT: Hash = b"root"
"""Parent of every sequence's first page."""


def chain(parent: Hash, tokens: Sequence[int]) -> Hash:
    """Name of a full page: depends on its tokens and, through `parent`, on everything before it."""
    return blake2b(np.asarray(tokens, np.int32).tobytes(), key=parent, digest_size=16).digest()


@dataclass(frozen=True)
class Identity:
    """What an evicted page used to hold, so that it can come back if nothing was written over it."""

    parent: Hash
    tokens: tuple[int, ...]
    depth: int
    tick: int


@dataclass(slots=True)
class Page:
    """A physical page.

    `tokens` is what the page holds or will hold; `filled` of them are valid now.  Example with page size 4: a job that
    is about to prefill [5 6 7] has tokens [5 6 7], filled 0; after a first chunk of two, filled 2.  Only filled
    positions may be read or copied, whatever the tokens or the hash promise.
    """

    number: int
    refs: int = 0
    parent: Hash | None = None
    tokens: list[int] = field(default_factory=list)
    filled: int = 0
    depth: int = 0
    tick: int = 0
    hash: Hash | None = None
    indexed: bool = False
    previous: Identity | None = None
