"""The ring between a writer and a callback, against a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assistant.audio.ring import SampleRing

Step = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 50)),
    st.tuples(st.just("read"), st.integers(1, 50)),
    st.tuples(st.just("drop"), st.just(0)),
)


@given(st.lists(Step, max_size=60), st.integers(1, 64))
def test_every_sample_once_and_in_order(steps: list[tuple[str, int]], capacity: int) -> None:
    ring, model, fading, number = SampleRing(capacity), [], 0, 1
    for action, size in steps:
        if action == "write":
            samples = np.arange(number, number + size, dtype=np.float32)
            lost = ring.write(samples)
            model += list(samples[: size - lost])
            assert lost == 0 or len(model) == capacity
            number += size
        elif action == "drop":
            ring.drop()
            fading = len(model)
            assert ring.waiting == 0
        else:
            out = np.full(size, np.nan, np.float32)
            count = ring.read_into(out)
            if fading:
                assert count == min(size, fading)
                assert np.allclose(out[:count], np.array(model[:count]) * np.linspace(1, 0, count))
                model, fading = model[fading:], 0
            else:
                assert list(out[:count]) == model[:count]
                model = model[count:]
            assert not out[count:].any()  # silence where there is nothing


def test_a_drop_fades_within_one_read() -> None:
    ring = SampleRing(1000)
    ring.write(np.ones(500, np.float32))
    ring.drop()
    ring.write(np.full(100, 2, np.float32))  # what comes after a drop stays
    assert ring.waiting == 100
    out = np.zeros(100, np.float32)
    ring.read_into(out)
    assert out[0] == 1 and out[-1] == 0 and (np.diff(out) < 0).all()
    ring.read_into(out)
    assert (out == 2).all()
