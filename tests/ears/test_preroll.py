"""The ring gives back every sample it still holds, and says which it does not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assistant.ears.preroll import PRE_ROLL, SoundRing


@given(
    st.integers(1, 50), st.integers(0, 1000), st.lists(st.integers(0, 70), max_size=10), st.integers(), st.integers()
)
def test_slices_are_the_stream(capacity, first, sizes, low, high):
    ring = SoundRing(capacity, first)
    end = first
    for size in sizes:
        ring.push(np.arange(end, end + size, dtype=np.float32))
        end += size
    assert ring.end == end
    assert ring.oldest == max(first, end - capacity)
    start, stop = first + low % (end - first + 5) - 2, first + high % (end - first + 5) - 2
    wanted = np.arange(max(start, ring.oldest), max(max(start, ring.oldest), min(stop, end)))
    assert np.array_equal(ring.slice(start, stop), wanted)


def test_an_utterance_begins_300_ms_before_its_onset():
    ring = SoundRing(16_000)
    ring.push(np.arange(16_000, dtype=np.float32))
    start, sound = ring.since_onset(12_000)
    assert start == 12_000 - PRE_ROLL == 12_000 - 4_800
    assert sound[0] == start
    assert len(sound) == 16_000 - start
    assert ring.since_onset(1_000)[0] == 0
