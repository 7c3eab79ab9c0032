"""Where a streamed reply is cut, and that the cut does not depend on the streaming."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voices import Clause, ClauseSplitter


def cut(text: str, *at: int, **settings: int) -> list[Clause]:
    """The clauses of a reply that comes in the pieces cut at these offsets."""
    splitter = ClauseSplitter(**settings)
    clauses: list[Clause] = []
    places = [0, *sorted(at), len(text)]
    for begin, end in zip(places, places[1:], strict=False):
        clauses += splitter.push(text[begin:end])
    return clauses + splitter.finish()


def texts(text: str, **settings: int) -> list[str]:
    return [c.text for c in cut(text, **settings)]


ONE_SENTENCE = [
    "Dr. Sharma paid $3.50 at 9:30 a.m. in the U.S. capital.",  # stream2sentence#2
    "Mr. and Mrs. Smith vs. Ms. Jones.",
    "It is 3.14.",
    "Use e.g. tea.",
    "That is, i.e. it.",
    "George W. Bush spoke.",
    "J. K. Rowling wrote it.",
    "Ask St. John.",
    "Open main.py now.",
    "See https://example.com/a.b?c=d now.",
    "Mail jane.doe@example.com today.",
    "No. 5 is alive.",
    "On Nov. 3 we met.",
    "See fig. 3 on p. 5.",
    "Python 3.11.4 is out.",
    "King Jr. spoke.",
    "Wait... what?",
    "Well… maybe not.",
    "Apples, pears etc. are fruit.",
    "It was 5 p.m. in Rome.",
    "Use `pip install. now` please.",
    "Click [the. docs](http://a.b/c. d).",
    "1. Boil the water",
]


@pytest.mark.parametrize("text", ONE_SENTENCE)
def test_no_sentence_end_is_seen_inside(text: str) -> None:
    # a comma may still start the sound early; a sentence end may not be seen
    assert [c.text for c in cut(text) if not c.continues] == [cut(text)[-1].text]


def test_the_reported_sentence_is_one_clause_token_by_token() -> None:
    text = "Dr. Sharma paid $3.50 at 9:30 a.m. in the U.S. capital."
    tokens = re.findall(r"\s?\w+|\W", text)
    splitter = ClauseSplitter()
    clauses = [c for t in tokens for c in splitter.push(t)] + splitter.finish()
    assert clauses == [Clause(text, 0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sure, here it is", ["Sure,", "here it is"]),  # pipecat#1548: no full stop at the end
        ("Sure", ["Sure"]),
        ("Yes. It is. Go!", ["Yes.", "It is.", "Go!"]),
        ("I live in the U.S. It is big.", ["I live in the U.S.", "It is big."]),
        ("Plan B. It works.", ["Plan B.", "It works."]),
        ("No. I don't.", ["No.", "I don't."]),
        ("It was 5 p.m. The sun set.", ["It was 5 p.m.", "The sun set."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("**Stop.** Now go.", ["**Stop.**", "Now go."]),
        ("Wait... Then it came.", ["Wait...", "Then it came."]),
        ("What?! No.", ["What?!", "No."]),
        ("你好。我是。", ["你好。", "我是。"]),
        ("Roses are red\nViolets are blue", ["Roses are red", "Violets are blue"]),
        ("# Title\n\nText here.", ["# Title", "Text here."]),
        ("- one\n- two\n", ["- one", "- two"]),
        ("1. First\n2. Second", ["1. First", "2. Second"]),
        ("Here:\n```py\nx = 1.\n\ny = 2. Z\n```\nDone.", ["Here:", "```py\nx = 1.\n\ny = 2. Z\n```", "Done."]),
        ("```\nnever closed. X", ["```\nnever closed. X"]),
        ("```inline. Code``` is fine.", ["```inline. Code``` is fine."]),
        ("...", ["..."]),
        ("", []),
        ("  \n \n", []),
        ("It was on May 5, 2024, we met.", ["It was on May 5, 2024,", "we met."]),
        ("One thousand is 1,000 here.", ["One thousand is 1,000 here."]),
    ],
)
def test_cuts(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_prose_wrapped_by_hand_is_not_cut_at_the_line_end() -> None:
    text = "The river runs past the old mill and the new bridge until it comes\nto the sea. Then it ends."
    assert not any(c.text.endswith("comes") for c in cut(text))


def test_the_first_clause_is_short_and_later_ones_grow() -> None:
    text = (
        "I think that the answer depends on the weather because it often rains here in the autumn and nobody likes to "
        "walk through the wet grass in the evening when it is dark and cold and the buses come so rarely in this town."
    )
    lengths = [len(c.text.split()) for c in cut(text)]
    assert lengths[0] <= 12
    assert lengths[1] <= 21
    assert max(lengths) <= 33
    assert all(c.continues for c in cut(text)[:-1])
    assert not cut(text)[-1].continues


def test_first_max_words_is_kept() -> None:
    text = "The quick brown fox jumped over the lazy dog near the river bank yesterday evening."
    assert len(texts(text, first_max_words=4)[0].split()) <= 5
    with pytest.raises(ValueError, match="first_max_words"):
        ClauseSplitter(first_max_words=0)


def test_a_clause_comes_as_soon_as_it_is_certain() -> None:
    splitter = ClauseSplitter()
    assert splitter.push("Sure") == []
    assert splitter.push(",") == []
    assert splitter.push(" here") == [Clause("Sure,", 0, continues=True)]
    assert splitter.push(" it is.") == []
    assert splitter.push(" ") == [Clause("here it is.", 6)]


def test_a_finished_splitter_takes_no_more() -> None:
    splitter = ClauseSplitter()
    splitter.finish()
    with pytest.raises(ValueError, match="new ClauseSplitter"):
        splitter.push("more")


PIECES = st.lists(
    st.sampled_from(
        "Dr. |U.S. |e.g. |3.14|$3.50 |9:30 |a.m. |No. |5 |Nov. |It |it |The |I |and |because |of |to |Sure|, |. |! "
        "|? |... |… |— |; |: |\n|\n\n|`|```|```py\n|\n```\n|**|[|](|)|] |- |1. |# |> | |  |word |Word |(a) |\"|' "
        "|it's |longer words here |http://a.b/c |x.y |你好。|😊 |~~~|\t".split("|")
    ),
    max_size=40,
).map("".join)


@given(PIECES, st.data())
def test_the_cut_does_not_depend_on_the_streaming(text: str, data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, len(text)), max_size=20))
    whole = cut(text)
    assert cut(text, *at) == whole
    assert cut(text, *range(len(text))) == whole


@given(PIECES | st.text(max_size=80))
def test_clauses_are_slices_of_the_reply_and_lose_only_white_space(text: str) -> None:
    at = 0
    for clause in cut(text):
        assert clause.text == text[clause.start : clause.end] != ""
        assert text[at : clause.start].strip() == ""
        assert clause.text == clause.text.strip()
        at = clause.end
    assert text[at:].strip() == ""


@given(st.text(max_size=60), st.data())
def test_any_text_at_any_cut(text: str, data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    assert cut(text, *at) == cut(text)
