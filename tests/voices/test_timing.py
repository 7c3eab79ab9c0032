"""From samples played to letters heard."""

from hypothesis import given
from hypothesis import strategies as st

from voices import WordTiming, at_rate, char_at, heard_chars

WORDS = (
    WordTiming(0, 6, 0, 4000, 3000),  # "Hello," with a pause behind it
    WordTiming(7, 12, 4000, 8000),  # "$3.50" …
    WordTiming(7, 12, 8000, 10000),  # … in two spoken words
    WordTiming(13, 18, 10000, 14000, 12000),
)


def test_a_word_is_heard_from_its_middle_on() -> None:
    assert heard_chars(WORDS, 0) == 0
    assert heard_chars(WORDS, 1499) == 0
    assert heard_chars(WORDS, 1500) == 6  # the pause does not count
    assert heard_chars(WORDS, 6999) == 6
    assert heard_chars(WORDS, 7000) == 12  # half of both spoken words together
    assert heard_chars(WORDS, 10999) == 12
    assert heard_chars(WORDS, 11000) == 18
    assert heard_chars((), 100) == 0


def test_the_word_being_spoken() -> None:
    assert [char_at(WORDS, n) for n in (0, 3999, 4000, 9000, 10000)] == [0, 0, 7, 7, 13]


def test_another_rate() -> None:
    assert at_rate(WORDS, 22050, 24000)[0] == WordTiming(0, 6, 0, 4354, 3265)
    assert at_rate(WORDS, 22050, 22050) == WORDS


@st.composite
def clauses(draw: st.DrawFn) -> tuple[WordTiming, ...]:
    """Words as a voice gives them: without gaps, some standing for the same letters, some without sound."""
    words, char, sample = [], 0, 0
    for length, spoken in draw(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), max_size=8)):
        for _ in range(spoken):
            sound, pause = draw(st.integers(0, 9000)), draw(st.integers(0, 3000))
            words.append(WordTiming(char, char + length, sample, sample + sound + pause, sample + sound))
            sample += sound + pause
        char += length + 1
    return tuple(words)


@given(clauses(), st.integers(-5, 300000), st.integers(0, 5000))
def test_heard_never_falls_and_is_always_a_word_end(words: tuple[WordTiming, ...], played: int, more: int) -> None:
    heard = heard_chars(words, played)
    assert heard in {0} | {w.end_char for w in words}
    assert heard <= heard_chars(words, played + more)


@given(clauses())
def test_all_is_heard_at_the_end_and_nothing_before_the_beginning(words: tuple[WordTiming, ...]) -> None:
    assert heard_chars(words, 0) == 0
    if words and words[-1].sound_end > 0:
        assert heard_chars(words, words[-1].sound_end) == words[-1].end_char


@given(clauses(), st.integers(0, 300000))
def test_what_has_not_begun_is_not_heard_and_what_is_over_is(words: tuple[WordTiming, ...], played: int) -> None:
    heard = heard_chars(words, played)
    begun = [w.end_char for w in words if w.start_sample <= played]
    assert heard <= max(begun, default=0)
    over = [i for i, w in enumerate(words) if 0 < w.sound_end <= played]
    whole = [words[i].end_char for i in over if all(w.end_char != words[i].end_char for w in words[i + 1 :])]
    assert heard >= max(whole, default=0)


@given(clauses(), st.integers(0, 300000))
def test_rates_agree_within_a_sample(words: tuple[WordTiming, ...], played: int) -> None:
    scaled = at_rate(words, 22050, 24000)
    for a, b in zip(scaled, scaled[1:], strict=False):
        assert a.end_sample == b.start_sample
    low, high = (heard_chars(words, played + d) for d in (-2, 2))
    assert low <= heard_chars(scaled, (played * 24000 + 11025) // 22050) <= high
