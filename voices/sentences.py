"""Does a sentence end at this mark? Decided from a text that is still growing.

`sentence_end` answers for one punctuation run. The answer may be "not yet known": it must never change when
more text arrives, so that the cut of a reply into clauses does not depend on how the reply was streamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

TERMINATORS = ".!?…。！？।؟"
_UNSPACED = "。！？।"  # scripts that write no space after a full stop
_CLOSERS = "\"'”’»)]}*_~`"

# Never the last word of a sentence: a name or a figure follows.
_TITLES = frozenset(
    "dr mr mrs ms mx prof gen col lt sgt capt cpt maj cmdr adm gov sen rep rev hon pres supt messrs mme mlle "
    "vs v e.g i.e eg ie cf viz approx ca fig figs eq eqs nos vol vols pp p ch sec dept univ assn "
    "z.b d.h bzw u.a".split()
)
# Abbreviations only when a figure follows ("No. 5", "Nov. 3"); otherwise ordinary words.
_BEFORE_FIGURE = frozenset("no nr jan feb mar apr jun jul aug sep sept oct nov dec art par op".split())
# May end a sentence; then the next word shows it.
_EITHER = frozenset(
    "tsp tbsp qt gal sec kg km cm "
    "st mt ft al jr sr inc ltd co corp etc u.s u.k u.n e.u u.s.a d.c a.m p.m a.d b.c b.c.e c.e ph.d m.d b.a m.a "
    "b.sc m.sc est min max ave blvd rd temp tel ext misc dist lb lbs oz hr hrs mon tue tues wed thu thurs fri".split()
)
# Words that begin a sentence far more often than they go on after "U.S." or an initial.
_STARTERS = frozenset(
    "the a an this that these those it its it's he she they we you i i'm i'll i've his her their our my your there "
    "here what when where why how who which is are was were do does did can could would should will if in on at by "
    "for from with as to and but or so because since while after before although however then now yes no not "
    "let let's please thanks today tomorrow yesterday some many most all each every one two another".split()
)
_ABBREVIATION = re.compile(r"(?:^|(?<=[\s(\[\"'“‘*_/—–-]))([^\W\d_]+(?:\.[^\W\d_]+)*)\Z")
_NEXT_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")


class Verdict(Enum):
    END = auto()
    INSIDE = auto()
    UNKNOWN = auto()  # more text is needed


@dataclass(frozen=True)
class Mark:
    """The verdict for a punctuation run and the offset behind it (closing quotes and markup included)."""

    verdict: Verdict
    end: int


def sentence_end(text: str, start: int, at: int, complete: bool) -> Mark:
    """Judge the terminator at `text[at]`, with the clause beginning at `start`.

    `complete` says that no more text will come. The verdict depends only on text that has arrived whole.
    """
    end = at + 1
    while end < len(text) and text[end] in TERMINATORS:
        end += 1
    run = text[at:end]
    closed = end
    while closed < len(text) and text[closed] in _CLOSERS:
        closed += 1
    if closed == len(text):
        return Mark(Verdict.END if complete else Verdict.UNKNOWN, closed)
    if text[closed] == "\n":
        return Mark(Verdict.END, closed)
    if not text[closed].isspace():
        # "3.14", "U.S", "a.b.com", "?tag": the mark is inside a word
        return Mark(Verdict.END if run[-1] in _UNSPACED else Verdict.INSIDE, closed if run[-1] in _UNSPACED else end)
    if run == "…" or (len(run) > 1 and set(run) == {"."}):
        return _by_next_word(text, closed, complete, lambda word: word[0].isupper())
    if run != "." or closed > end:
        return Mark(Verdict.END, closed)
    return _after_full_stop(text, start, at, closed, complete)


def at_line_start(text: str, at: int) -> bool:
    """Only blanks stand between the beginning of the line and `at`."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _after_full_stop(text: str, start: int, at: int, closed: int, complete: bool) -> Mark:
    before = text[start:at]
    line = before.rpartition("\n")[2].strip()
    if re.fullmatch(r"[-*+>\s]*\d{1,3}", line) and at_line_start(text, at - len(line)):
        return Mark(Verdict.INSIDE, closed)  # "1. First": the number of a list item
    found = _ABBREVIATION.search(before)
    if not found:
        return Mark(Verdict.END, closed)
    word = found.group(1).lower()
    if word in _TITLES:
        return Mark(Verdict.INSIDE, closed)
    if word in _BEFORE_FIGURE:
        return _by_next_word(text, closed, complete, lambda nxt: not nxt[0].isdigit())
    initial = len(word) == 1 and found.group(1).isupper() and word != "i"  # "and I." ends more than it abbreviates
    if word in _EITHER or initial or re.fullmatch(r"(?:[a-z]\.)+[a-z]", word):
        return _by_next_word(text, closed, complete, lambda nxt: nxt.lower() in _STARTERS and nxt[0].isupper())
    return Mark(Verdict.END, closed)


def _by_next_word(text: str, closed: int, complete: bool, ends: Callable[[str], bool]) -> Mark:
    at = closed
    while at < len(text) and (text[at].isspace() or text[at] in "\"'“‘(*_"):
        if text[at] == "\n":
            return Mark(Verdict.END, closed)
        at += 1
    found = _NEXT_WORD.match(text, at)
    if at == len(text) or (found and found.end() == len(text)):
        if not complete:
            return Mark(Verdict.UNKNOWN, closed)
    if at == len(text):
        return Mark(Verdict.END, closed)
    if not found:
        return Mark(Verdict.INSIDE, closed)
    # An apostrophe at the very end of the word might still grow ("It" -> "It's"): wait for what follows it.
    if not complete and found.end() + 1 == len(text) and text[found.end()] in "'’":
        return Mark(Verdict.UNKNOWN, closed)
    return Mark(Verdict.END if ends(found.group()) else Verdict.INSIDE, closed)
