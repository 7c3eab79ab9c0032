"""Cut a reply into clauses while it is being written.

    splitter = ClauseSplitter()
    for delta in deltas:
        for clause in splitter.push(delta): speak(clause)
    for clause in splitter.finish(): speak(clause)

The first clause is short so that sound starts early; later ones grow, because by then sound is already playing
and longer stretches sound better. Each clause is a slice of the model's own text, never changed: markup and
figures are dealt with when the clause is spoken (`speakable`).

A cut is decided as soon as the text that decides it is there and never revised, so the clauses are the same
however the reply was cut into deltas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from voices.sentences import TERMINATORS, Verdict, at_line_start, sentence_end


@dataclass(frozen=True)
class Clause:
    """A stretch of the reply to be spoken in one go.

    `text == reply[start : start + len(text)]`; only white space lies between two clauses. `continues` says that
    the sentence goes on in the next clause, so that the voice must not fall at the end.
    """

    text: str
    start: int
    continues: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class ClauseLimits:
    """From how many words on a clause may be cut at a mark of each strength."""

    comma: int  # at a comma, semicolon, colon or dash
    conjunction: int  # before "and", "because", "which" …
    preposition: int  # before "of", "in", "is" …
    anywhere: int  # between any two words


FIRST = ClauseLimits(comma=2, conjunction=4, preposition=8, anywhere=12)
SECOND = ClauseLimits(comma=5, conjunction=8, preposition=12, anywhere=20)
LATER = ClauseLimits(comma=8, conjunction=13, preposition=20, anywhere=32)

# One of these before a comma is a clause of its own: "Sure, …"
_OPENERS = frozenset(
    "sure yes no well okay ok oh hi hello hey ah right great thanks sorry absolutely certainly indeed actually "
    "exactly alright hmm so yeah yep nope please good ja nein oui non sí sì".split()
)
_CONJUNCTIONS = frozenset(
    "and but or because which that who whose so if when while where although though unless until since whereas "
    "und aber oder weil dass wenn et mais ou parce que y pero o porque e ma perché".split()
)
_PREPOSITIONS = frozenset(
    "in on at for from with by about into over under between through after before during without "
    "is are was were has have had can could will would should may might must do does did".split()
)
_BINDING = frozenset("a an the of to my your his her its our their this that these those no very more most".split())
_WORD = re.compile(r"\S*\w\S*")
_FENCE = re.compile(r"[ \t]*(`{3,}(?![^\n]*`)|~{3,})")
_LINE_OF_ITS_OWN = re.compile(r"[ \t]*(?:[-*+•] |\d{1,3}[.)] |#{1,6} |>|\||(?:[-*_] ?){3,}$)")
_LOOKAHEAD = 200  # how far an opened code span or link label is waited for


class ClauseSplitter:
    """Turns streamed text into clauses; one object for one reply, used from one thread."""

    def __init__(self, first_max_words: int = FIRST.anywhere) -> None:
        """`first_max_words`: the longest first clause, in words, where the text offers no better place to cut."""
        if first_max_words < 1:
            raise ValueError("first_max_words must be at least 1")
        self._first = ClauseLimits(
            comma=min(FIRST.comma, first_max_words),
            conjunction=max(1, first_max_words * FIRST.conjunction // FIRST.anywhere),
            preposition=max(1, first_max_words * FIRST.preposition // FIRST.anywhere),
            anywhere=first_max_words,
        )
        self._text = ""
        self._start = 0  # of the clause being collected
        self._at = 0  # everything before it holds no cut
        self._spoken = 0  # clauses handed out
        self._complete = False

    @property
    def text(self) -> str:
        """All text received so far."""
        return self._text

    def push(self, delta: str) -> list[Clause]:
        """Take more text; returns the clauses that it completes."""
        if self._complete:
            raise ValueError("this reply is finished; a new one needs a new ClauseSplitter")
        self._text += delta
        return self._cut_all()

    def finish(self) -> list[Clause]:
        """The reply is over: returns what is left, with or without a full stop."""
        self._complete = True
        clauses = self._cut_all()
        if self._start < len(self._text):
            clauses += self._emit(len(self._text), continues=False)
        return clauses

    # ---- the scan ------------------------------------------------------------------------------------------

    def _cut_all(self) -> list[Clause]:
        clauses: list[Clause] = []
        while (cut := self._next_cut()) is not None:
            end, continues = cut
            clauses += self._emit(end, continues)
        return clauses

    def _emit(self, end: int, continues: bool) -> list[Clause]:
        raw = self._text[self._start : end]
        text = raw.strip()
        clause = Clause(text, self._start + len(raw) - len(raw.lstrip()), continues)
        self._start = self._at = end
        if not text:
            return []
        # Marks without a word ("—", "...") don't use up the short first clause.
        if any(c.isalnum() for c in text):
            self._spoken += 1
        return [clause]

    def _limits(self) -> ClauseLimits:
        return (self._first, SECOND)[self._spoken] if self._spoken < 2 else LATER

    def _next_cut(self) -> tuple[int, bool] | None:
        """The next cut as (offset, the sentence goes on), or None when more text is needed to know it."""
        text, limits = self._text, self._limits()
        while self._at < len(text):
            at = self._at
            char = text[at]
            if self._start == at and char in "`~ \t" and at_line_start(text, at):
                fence = self._fenced_block(at)
                if fence is _WAIT:
                    return None
                if isinstance(fence, int):
                    return fence, False
            if char == "\n":
                cut = self._at_newline(at)
                if cut is _WAIT:
                    return None
                if cut:
                    return at + 1, False
                self._at += 1
                continue
            if char.isspace():
                word_cut = self._before_word(at, limits)
                if word_cut is _WAIT:
                    return None
                if word_cut:
                    return at, True
                self._at += 1
                continue
            step = self._at_mark(at, char, limits)
            if step is _WAIT:
                return None
            if isinstance(step, tuple):
                return step
            assert isinstance(step, int)
            self._at = step
        return None

    def _words(self, end: int) -> int:
        return len(_WORD.findall(self._text, self._start, end))

    def _fenced_block(self, at: int) -> int | None | _Wait:
        """A code block is one clause: its end, or None where no fence begins."""
        text = self._text
        line_end = text.find("\n", at)
        opened = _FENCE.match(text, at)
        if line_end < 0 and not self._complete:
            head = text[at:].lstrip(" \t")
            might_open = len(head) < 3 and (head == "`" * len(head) or head == "~" * len(head))
            return _WAIT if opened or might_open else None
        if not opened:
            return None
        if line_end < 0:
            return len(text)
        closing = re.compile(rf"^[ \t]*{re.escape(opened[1])}+[ \t]*$", re.MULTILINE)
        closed = closing.search(text, line_end + 1)
        if closed and (closed.end() < len(text) or self._complete):
            return closed.end()
        return len(text) if self._complete else _WAIT

    def _at_newline(self, at: int) -> bool | _Wait:
        """A line end ends the clause, except where prose was wrapped by hand."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        if len(line) < 60 or _LINE_OF_ITS_OWN.match(line):
            return True
        rest = self._text[at + 1 :]
        following = rest.lstrip(" ")
        if not following:
            return True if self._complete else _WAIT
        return not following[0].islower()

    def _before_word(self, at: int, limits: ClauseLimits) -> bool | _Wait:
        """Is `text[at]` (a blank) a place to cut because of the word that follows?"""
        text, words = self._text, self._words(at)
        if words < min(limits.conjunction, limits.preposition, limits.anywhere):
            return False
        if at + 1 < len(text) and text[at + 1].isspace():
            return False
        found = re.compile(r"\S+").match(text, at + 1)
        if not found or found.end() == len(text):
            # The word may still grow, and the reply may be over here: then no cut is needed.
            return False if self._complete else _WAIT
        word = found.group().lower()
        # "Dr. | Smith", "5 | km", "the | end" would be torn apart
        loose = not (text[at - 1] in ".$€£" or text[at - 1].isdigit()) and text[:at].split()[-1] not in _BINDING
        return (
            (words >= limits.anywhere and word[0].isalnum() and loose)
            or (words >= limits.conjunction and word in _CONJUNCTIONS)
            or (words >= limits.preposition and word in _PREPOSITIONS)
        )

    def _at_mark(self, at: int, char: str, limits: ClauseLimits) -> int | tuple[int, bool] | _Wait:
        """The next offset to look at, or a cut."""
        text = self._text
        if char in "`[":
            return self._whole(at, char)
        if char in TERMINATORS:
            mark = sentence_end(text, self._start, at, self._complete)
            if mark.verdict is Verdict.UNKNOWN:
                return _WAIT
            return (mark.end, False) if mark.verdict is Verdict.END and mark.end < len(text) else mark.end
        if char in ",;:—–":
            return self._at_comma(at, char, limits)
        return at + 1

    def _at_comma(self, at: int, char: str, limits: ClauseLimits) -> int | tuple[int, bool] | _Wait:
        text = self._text
        end = at + 1
        while end < len(text) and text[end] in "\"'”’»)]*_~`":
            end += 1
        if end == len(text):
            return end if self._complete else _WAIT
        if not text[end].isspace() and not (char == "—" and text[end].isalnum()):
            return end
        only = text[self._start : at].strip("\"'“‘*_ ").lower()
        if self._words(at) < limits.comma and not (self._spoken == 0 and only in _OPENERS and char in ",—"):
            return end
        # A cut at the very end of the reply would leave nothing for the next clause.
        rest = text[end:].lstrip(" \t")
        if not rest:
            return end if self._complete else _WAIT
        if rest[0].isdigit() and text[at - 1].isdigit():
            return end  # "November 5, 2024"
        return end, True

    def _whole(self, at: int, char: str) -> int | _Wait:
        """Step over a code span or a link, which no cut may split."""
        text = self._text
        limit = min(len(text), at + _LOOKAHEAD)
        stop = text.find("\n", at, limit)
        known = stop >= 0 or limit == at + _LOOKAHEAD or self._complete
        stop = limit if stop < 0 else stop
        if char == "`":
            run = at
            while run < stop and text[run] == "`":
                run += 1
            if run == len(text) and not known:
                return _WAIT
            closing = re.compile(rf"(?<!`)`{{{run - at}}}(?!`)").search(text, run, stop)
            if closing and (closing.end() < len(text) or known):
                return closing.end()
            return run if known else _WAIT
        close = text.find("]", at, stop)
        if close < 0:
            return at + 1 if known else _WAIT
        if close + 1 == len(text):
            return close + 1 if known else _WAIT
        if text[close + 1] != "(":
            return at + 1
        target = text.find(")", close, stop)
        if target < 0:
            return at + 1 if known else _WAIT
        return target + 1


class _Wait:
    """The answer "not yet known"."""


_WAIT = _Wait()
