"""Saved sessions: the same bits back, and nothing else accepted."""

import numpy as np
import pytest

from engine import Sampling, SavedSessionError, ShiftRefused
from engine.shift import turn
from kernels.contract import RopeSpec
from tests.engine.test_sessions import KINDS, letters, make, same  # noqa: F401
from tests.engine.tiny import fresh_logits, tiny_file


@KINDS
@pytest.mark.parametrize("n", [1, 4, 30])
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_a_loaded_session_goes_on_as_the_saved_one(make, windows, n, page_size, tmp_path):  # noqa: F811
    first = make(windows).new_session(letters(n))
    first.save(tmp_path / "s")
    other = make(windows, page_size=page_size)
    loaded = other.load_session(tmp_path / "s")
    assert loaded.stats.forwarded <= (1 if windows == (None, None) else n)
    loaded.append([9, 10])
    same(loaded, letters(n) + [9, 10])
    other.check()


def test_generated_pending_tokens_are_saved_too(make, tmp_path):  # noqa: F811
    engine = make()
    session = engine.new_session(letters(6))
    list(session.generate(Sampling(max_tokens=3, stop_at_end_of_turn=False)))
    session.save(tmp_path / "s")
    same(engine.load_session(tmp_path / "s"), session.ids)


def test_every_flipped_byte_and_every_truncation_is_refused(make, tmp_path):  # noqa: F811
    engine = make()
    path = tmp_path / "s"
    engine.new_session(letters(5)).save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for at in [0, 3, 8, 20, len(whole) - 1, *random.integers(0, len(whole), 60)]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(damaged)
        with pytest.raises(SavedSessionError):
            engine.load_session(path)
    for length in [0, 4, 8, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(SavedSessionError):
            engine.load_session(path)
    engine.check()


def test_another_model_or_precision_is_refused(make, tmp_path):  # noqa: F811
    path = tmp_path / "s"
    make().new_session(letters(5)).save(path)
    for other in (make(file=tiny_file(seed=9)), make(kv_dtype="float16"), make((6, 6))):
        with pytest.raises(SavedSessionError, match="another model"):
            other.load_session(path)
    with pytest.raises(SavedSessionError, match="no saved session"):
        make().load_session(tmp_path / "missing")


def test_a_failed_save_leaves_the_old_file(make, tmp_path, monkeypatch):  # noqa: F811
    import os

    engine = make()
    path = tmp_path / "s"
    session = engine.new_session(letters(5))
    session.save(path)
    before = path.read_bytes()

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    session.append([5])
    with pytest.raises(SavedSessionError, match="No space left"):
        session.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["s"]


def test_turning_keys_is_what_rope_at_another_position_gives():
    from kernels.reference import BACKEND

    file = tiny_file()
    model = BACKEND.load(file.shape, file.weights)
    import torch

    keys = torch.randn(5, 1, 8)
    at = model.rotate(keys, torch.arange(20, 25), 0).numpy()
    moved = turn(at, RopeSpec(10000.0, 8), -7)
    assert np.abs(moved - model.rotate(keys, torch.arange(13, 18), 0).numpy()).max() < 1e-5


def test_a_shift_keeps_the_ids_and_never_poisons_the_prefix(make):  # noqa: F811
    engine = make()
    ids = letters(22)
    session = engine.new_session(ids)
    other = session.fork()
    session.shift(keep=5, drop=6)
    left = ids[:5] + ids[11:]
    assert session.ids == left
    shifted = session.last_logits()
    assert not np.array_equal(shifted, fresh_logits(engine.file, left)), "it is not the cache of the shorter text"
    same(other, ids)
    same(engine.new_session(left), left)
    session.append([5, 6])
    session.truncate(3)
    same(session, ids[:3])


@pytest.mark.parametrize("keep", [0, 4, 5, 9])
@pytest.mark.parametrize("drop", [3, 4, 8])
def test_with_one_layer_a_shift_is_exact(make, keep, drop):  # noqa: F811
    """A first layer's keys depend on token and position alone; with more layers what differs is the past they saw."""
    engine = make((None,))
    session = engine.new_session(letters(30))
    session.shift(keep, drop)
    left = letters(30)[:keep] + letters(30)[keep + drop :]
    session.append([7])
    assert np.abs(session.last_logits() - fresh_logits(engine.file, [*left, 7])).max() < 1e-4


def test_a_shift_is_refused_where_it_is_wrong(make):  # noqa: F811
    with pytest.raises(ShiftRefused, match="sliding-window"):
        make((6, None)).new_session(letters(20)).shift(2, 4)


def test_a_shifted_session_saves_and_loads(make, tmp_path):  # noqa: F811
    engine = make()
    session = engine.new_session(letters(22))
    session.shift(5, 6)
    row = session.last_logits()
    session.save(tmp_path / "s")
    loaded = engine.load_session(tmp_path / "s")
    assert np.allclose(loaded.last_logits(), row, atol=1e-4)
    same(engine.new_session(session.ids), session.ids)
