"""Which phonemes belong to which word, when the phonemiser joins or divides words."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voices.alignment import word_starts

SOUNDS = {
    "in": "ˈɪn", "the": "ðə", "end": "ˈɛnd", "of": "ʌv", "day": "dˈeɪ", "do": "dˈuː", "not": "nˈɑːt", "go": "ɡˈoʊ",
    "G.P.U's": "dʒˌiːpˈiː jˈuːz", "are": "ˈɑːɹ", "good": "ɡˈʊd", "-": "",
}  # fmt: skip


def parts(phonemes: str, words: list[str]) -> list[str]:
    starts = word_starts(list(phonemes), words, SOUNDS.__getitem__)
    return [phonemes[a:b].strip() for a, b in pairwise([*starts, len(phonemes)])]


@pytest.mark.parametrize(
    ("phonemes", "words", "expected"),
    [
        ("ɪn ðə ˈɛnd.", ["in", "the", "end"], ["ɪn", "ðə", "ˈɛnd."]),
        ("ɪnðɪ ˈɛnd.", ["in", "the", "end"], ["ɪn", "ðɪ", "ˈɛnd."]),
        ("ˈɛnd ʌvðə dˈeɪ", ["end", "of", "the", "day"], ["ˈɛnd", "ʌv", "ðə", "dˈeɪ"]),
        ("duːnˌɑːt ɡˌoʊ", ["do", "not", "go"], ["duː", "nˌɑːt", "ɡˌoʊ"]),
        ("dʒˌiːpˌiː jˈuːz ɑːɹ ɡˈʊd", ["G.P.U's", "are", "good"], ["dʒˌiːpˌiː jˈuːz", "ɑːɹ", "ɡˈʊd"]),
        # as many runs as words, but one word comes as two and two come as one
        ("dʒˌiːpˌiː jˈuːz ʌvðə dˈeɪ", ["G.P.U's", "of", "the", "day"], ["dʒˌiːpˌiː jˈuːz", "ʌv", "ðə", "dˈeɪ"]),
        ("ɪn ˈɛnd", ["in", "-", "end"], ["ɪn", "", "ˈɛnd"]),
        ("", ["in"], [""]),
    ],
)
def test_words_get_their_sounds(phonemes: str, words: list[str], expected: list[str]) -> None:
    assert parts(phonemes, words) == expected


@given(st.lists(st.sampled_from(sorted(SOUNDS)), min_size=1, max_size=10), st.data())
def test_starts_rise_whatever_was_joined(words: list[str], data: st.DataObject) -> None:
    joined = data.draw(st.lists(st.sampled_from([" ", ""]), min_size=len(words), max_size=len(words)))
    phonemes = "".join(SOUNDS[w] + j for w, j in zip(words, joined, strict=True))
    starts = word_starts(list(phonemes), words, SOUNDS.__getitem__)
    assert len(starts) == len(words)
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] <= len(phonemes)


@given(st.text("ab ˈ", max_size=30), st.lists(st.text("ab-", min_size=1, max_size=5), max_size=8))
def test_any_mismatch_gives_an_order(phonemes: str, words: list[str]) -> None:
    starts = word_starts(list(phonemes), words, lambda w: w.replace("-", " "))
    assert len(starts) == len(words)
    assert starts == sorted(starts)
    assert all(0 <= s <= len(phonemes) for s in starts)
