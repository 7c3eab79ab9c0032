"""Silence at the ends of a sentence, in one piece or many."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voices.silence import Pauses, Trimmer

RATE = 1000


def trimmed(sound: np.ndarray, cuts: list[int], mark: str = ".") -> tuple[np.ndarray, int]:
    trimmer = Trimmer(Pauses(before=0.01, comma=0.1, sentence=0.2), RATE, mark, len(sound))
    places = [0, *sorted(cuts), len(sound)]
    pieces = [trimmer.push(sound[a:b]) for a, b in zip(places, places[1:], strict=False)]
    return np.concatenate(pieces), trimmer.dropped


def noise(before: int, loud: int, behind: int) -> np.ndarray:
    return np.concatenate([np.zeros(before), np.full(loud, 0.3), np.zeros(behind)]).astype(np.float32)


def test_both_ends_are_cut_to_the_pauses() -> None:
    assert len(trimmed(noise(60, 500, 300), [])[0]) == 10 + 500 + 200
    assert len(trimmed(noise(60, 500, 300), [], ",")[0]) == 10 + 500 + 100
    assert trimmed(noise(60, 500, 300), [])[1] == 50


def test_short_silence_stays_and_none_is_added() -> None:
    assert len(trimmed(noise(5, 500, 20), [])[0]) == 525


def test_silence_alone_is_not_endless() -> None:
    assert len(trimmed(np.zeros(700, np.float32), [])[0]) == 200


@given(st.integers(0, 90), st.integers(1, 300), st.integers(0, 500), st.lists(st.integers(100, 800), max_size=5))
def test_stretches_make_no_difference_behind_the_first_sound(
    before: int, loud: int, behind: int, cuts: list[int]
) -> None:
    sound = noise(before, loud, behind)
    cuts = [c for c in cuts if before + 1 <= c <= len(sound)]
    whole, dropped = trimmed(sound, [])
    pieces, dropped_too = trimmed(sound, cuts)
    assert dropped == dropped_too
    # what was given back before the end was known cannot be taken back
    reach = min(len(sound), max([c for c in cuts if c < len(sound)], default=0)) - dropped
    assert len(pieces) == max(len(whole), reach)
    np.testing.assert_array_equal(pieces[: len(whole)], whole)
