"""A session on disk: ids, keys and values, what they belong to, and the means to tell that they are whole.

The file is safetensors.  Positions lie one behind another whatever the page size was, so that a session saved with
pages of 256 loads into pages of 16:

    ids            int32 [n]
    logits         float32 [vocab]                  the row behind the last id
    g0.a0, g0.a1   [layers, n, kv_heads, head_dim]  full layers: keys, values (further arrays: scales)
    g1.a0, ...     [layers, n - first, ...]         windowed layers: what the window and slack still hold
    metadata       format, fingerprint, groups with their first positions, checksum
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import OutOfPages, SavedSessionError
from engine.jobs import LogitsJob, Slot
from engine.pages.sequence import Sequence
from engine.settings import Priority
from kernels.contract import ABSENT

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.session import Session

FORMAT = "crosstalk-session-1"
_PLACEHOLDER = b"0" * 64
_TOLERANCE = 1e-3
"""How far the logits recomputed on load may be from the stored row: other threads or chunks round differently."""


def fingerprint(engine: Engine) -> str:
    """Digest of all that decides what the stored numbers mean: weights, tokenizer, template, RoPE, precision."""
    store = engine.store
    parts = {
        "model": engine.fingerprint,
        "shape": repr(engine.shape),
        "tokenizer": [engine.tokenizer.size, engine.tokenizer.bos_id, sorted(engine.tokenizer.stop_ids)],
        "template": engine.template_source,
        "dtype": store.cache.dtype,
        "groups": [[list(spec.layers), spec.window] for spec in store.groups],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


# ---- writing -----------------------------------------------------------------------------------------------------


def save_session(engine: Engine, slot: Slot, path: Path) -> None:
    """Write the session; the file appears whole or not at all.  `SavedSessionError` if the disk refuses."""
    from safetensors.numpy import save

    engine.worker.submit(LogitsJob(slot, pages=True)).result()  # brings the session up to date: nothing pending is left
    tensors, about = engine.worker.call(lambda: _export(engine, slot.seq), slot)
    about |= {"format": FORMAT, "fingerprint": fingerprint(engine), "checksum": _PLACEHOLDER.decode()}
    data = _sealed(save(tensors, {"crosstalk": json.dumps(about)}))
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise SavedSessionError(f"The session cannot be written to {path}: {error.strerror or error}.") from error


def _export(engine: Engine, seq: Sequence) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    store, size = engine.store, engine.store.page_size
    assert seq.logits is not None and seq.filled == len(seq.ids)
    tensors = {"ids": np.array(seq.ids, np.int32), "logits": seq.logits}
    firsts = []
    for g in range(len(store.groups)):
        pieces = []
        for block in range(seq.first[g], -(-seq.filled // size)):
            n = min(size, seq.filled - block * size)
            pieces.append(store.cache.export_page(g, int(seq.tables[g][block]), n))
        for a, arrays in enumerate(zip(*pieces, strict=True)):
            tensors[f"g{g}.a{a}"] = np.ascontiguousarray(np.concatenate(arrays, axis=1))
        firsts.append(seq.first[g] * size)
    return tensors, {"first": firsts, "salted": None if seq.salted is None else seq.salted * size}


def _sealed(data: bytes) -> bytes:
    """The file with its placeholder replaced by the digest of everything, placeholder included."""
    return data.replace(_PLACEHOLDER, hashlib.sha256(data).hexdigest().encode(), 1)


def _is_sealed(data: bytes, checksum: str) -> bool:
    seal = checksum.encode()
    return len(seal) == 64 and _sealed(data.replace(seal, _PLACEHOLDER, 1)) == data


# ---- reading -----------------------------------------------------------------------------------------------------


def load_session(engine: Engine, path: Path, priority: Priority) -> Session:
    """Read a session back onto pages.  Its last token is forwarded once to verify the stored logits row."""
    from engine.session import Session

    tensors, about = _read(engine, path)
    slot: Slot = engine.worker.call(lambda: engine.add_slot(_import(engine, tensors, about), priority))
    session = Session(engine, slot)
    try:
        stored = tensors["logits"]
        difference = float(np.abs(session.last_logits() - stored).max())
        if not difference <= _TOLERANCE * max(1.0, float(np.abs(stored).max())):
            raise SavedSessionError(
                f"{path} does not reproduce its own logits (they differ by {difference:.3g}): "
                "it was written by another version of the engine; start a new session."
            )
    except BaseException:
        session.close()
        raise
    return session


def _read(engine: Engine, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        data = path.read_bytes()
        tensors = load(data)
        (length,) = struct.unpack_from("<Q", data)
        about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["crosstalk"])
        sealed = _is_sealed(data, about["checksum"])
    except FileNotFoundError as error:
        raise SavedSessionError(f"There is no saved session at {path}.") from error
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise SavedSessionError(f"{path} is damaged or not a saved session: {error}.") from error
    if not sealed:
        raise SavedSessionError(f"{path} is damaged: its checksum does not match.")
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise SavedSessionError(f"{path} is not a saved session of this engine.")
    if about.get("fingerprint") != fingerprint(engine):
        raise SavedSessionError(f"{path} was saved with another model, tokenizer, template or cache precision.")
    if len(tensors["ids"]) > engine.context:
        raise SavedSessionError(f"{path} holds {len(tensors['ids'])} tokens, the context is {engine.context}.")
    return tensors, about


def _import(engine: Engine, tensors: dict[str, np.ndarray], about: dict[str, Any]) -> Sequence:
    """Lay the positions out on pages of this engine's size; worker only."""
    store, size = engine.store, engine.store.page_size
    seq = store.new()
    seq.ids = tensors["ids"].tolist()
    n, blocks = len(seq.ids), -(-len(seq.ids) // size)
    seq.room(blocks)
    if about["salted"] is not None:
        seq.salt(about["salted"] // size)
    try:
        for g, pool in enumerate(store.pools):
            start = about["first"][g]
            first = -(-start // size)  # a page of which only the end was saved is of no use
            pages = pool.allocate(blocks - first, [(seq.parent_hash(b), b) for b in range(first, blocks)])
            for block, page in zip(range(first, blocks), pages, strict=True):
                seq.tables[g][block] = page.number
                low, high = block * size - start, min((block + 1) * size, n) - start
                arrays = tuple(tensors[f"g{g}.a{a}"][:, low:high] for a in _arrays(tensors, g))
                pool.begin_write(page)
                store.cache.import_page(g, page.number, arrays)
                pool.claim(page, seq.block_tokens(block, n))
                pool.fill(page, high - low)
            seq.first[g] = first
            assert ABSENT not in seq.tables[g][first:blocks]
    except OutOfPages:
        store.drop(seq, keep=False)
        raise
    seq.filled, seq.reserved = n, [n] * len(store.pools)
    seq.logits = None
    store.unfill(seq, n - 1)  # the last token is forwarded again to check the stored row
    store.leave_windows(seq)
    return seq


def _arrays(tensors: dict[str, np.ndarray], g: int) -> range:
    return range(sum(name.startswith(f"g{g}.a") for name in tensors))
