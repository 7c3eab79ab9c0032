"""Text made speakable: what a person would say for it, each spoken word tied to the letters it stands for.

    speakable("**Dr. Sharma** paid $3.50.").text  ->  "Doctor Sharma paid three dollars and fifty cents."

Three steps: the marks of Markdown are taken off (`markup`), rules claim what is not said as it is written
(`say/`, by precedence), what is left is words and punctuation. The voice gets plain words and the six marks that
it knows; the session keeps the model's own text, and a spoken word's range says how much of that was heard.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from voices.language import Language, language
from voices.mapped import Kind, MappedText
from voices.markup import plain
from voices.say import contacts, dates, letters, numbers, quantities, symbols
from voices.say.code import say_code
from voices.say.rule import Part, Rule


@dataclass(frozen=True)
class SpokenWord:
    """One spoken word and `source[start:end]`, the written word it belongs to, with its punctuation and markup.

    Words of one phrase ("$3.50") share a range; ranges of different phrases follow each other and never overlap.
    `mark` is the punctuation behind it for the voice, one of `, ; : . ! ?` or nothing.
    """

    spoken: str
    start: int
    end: int
    mark: str = ""


@dataclass(frozen=True)
class SpokenText:
    words: tuple[SpokenWord, ...]

    @property
    def text(self) -> str:
        """The words with their marks, as the voice gets them; empty where there is nothing to say."""
        return " ".join(w.spoken + w.mark for w in self.words)


@dataclass
class _Draft:
    spoken: str
    start: int  # range in the plain text
    end: int
    mark: str = ""


_TOKEN = re.compile(
    r"(?P<word>[^\W_]+(?:['’‑-][^\W_]+)*)|(?P<ellipsis>\.{2,}|…)|(?P<mark>[,;:.!?。！？，、；：؟।])"
    r"|(?P<dash>\s[–—―-]+\s|[—―]|--+)|(?P<bracket>[()\[\]{}|])|(?P<line>\n)"
)
_MARKS = {"。": ".", "।": ".", "！": "!", "？": "?", "؟": "?", "，": ",", "、": ",", "；": ";", "：": ":"}
_STRENGTH = {"": 0, ",": 1, ";": 2, ":": 3, ".": 4, "!": 5, "?": 6}


def speakable(
    source: str, language_code: str = "en", *, continues: bool = False, name_emoji: bool = False
) -> SpokenText:
    """The spoken form of a clause of the model's own text.

    `continues` says that the sentence goes on behind it, so the voice must not fall. `name_emoji` speaks emoji by
    their names instead of leaving them out. The result has no words where nothing can be said ("...", "—", "🙂").
    """
    if not any(c.isalnum() for c in source) and source.isascii():
        return SpokenText(())
    lang = language(language_code)
    mapped = plain(source)
    drafts = _words(mapped, _claims(mapped, lang, name_emoji))
    if drafts and drafts[-1].mark in ("", ",", ";"):
        drafts[-1].mark = "," if continues else "."
    return SpokenText(_tied_to_source(drafts, mapped, source))


@lru_cache(maxsize=16)
def _rules(lang: Language) -> tuple[Rule, ...]:
    """Earlier rules take precedence."""
    if not lang.english:
        return (
            *contacts.rules(lang),
            *dates.other(lang),
            *quantities.other(),
            *numbers.other(),
            *symbols.other(),
        )
    return (
        *contacts.rules(lang),
        *symbols.shapes(),
        *dates.english(),
        *numbers.shapes(),
        *quantities.english(),
        *letters.english(),
        *numbers.figures(),
        *symbols.english(),
    )


def _claims(mapped: MappedText, lang: Language, name_emoji: bool) -> dict[int, tuple[int, list[Part]]]:
    """What rules say, by where it begins: start -> (end, parts with offsets in the plain text)."""
    text = mapped.text
    taken = bytearray(len(text))
    claims: dict[int, tuple[int, list[Part]]] = {}

    def claim(start: int, end: int, parts: list[Part]) -> None:
        claims[start] = (end, parts)
        taken[start:end] = b"\1" * (end - start)

    for start, end, kind in _joined(mapped.spans):
        if kind is Kind.CODE:
            said = say_code(text[start:end], lang)
            claim(start, end, [Part(word, start + a, start + b) for word, a, b in said])
        else:
            claim(start, end, [Part(text[start:end], start, end)])
    for start, end, name in symbols.emojis(text, lang, name_emoji):
        if not any(taken[start:end]):
            claim(start, end, [Part(name, start, end)])
    for rule in _rules(lang):
        for match in rule.pattern.finditer(text):
            start, end = match.span()
            if start == end or any(taken[start:end]):
                continue
            result = rule.say(match, lang)
            if result is None:
                continue
            parts = [Part(result, 0, end - start)] if isinstance(result, str) else result
            claim(start, end, [Part(p.said, start + p.start, start + p.end) for p in parts])
    return claims


def _joined(spans: list[tuple[int, int, Kind]]) -> list[tuple[int, int, Kind]]:
    joined: list[tuple[int, int, Kind]] = []
    for start, end, kind in spans:
        if joined and joined[-1][1] == start and joined[-1][2] is kind:
            joined[-1] = (joined[-1][0], end, kind)
        else:
            joined.append((start, end, kind))
    return joined


def _words(mapped: MappedText, claims: dict[int, tuple[int, list[Part]]]) -> list[_Draft]:
    text = mapped.text.rstrip("\n")
    letters = _with_marks_as_letters(text)
    drafts: list[_Draft] = []
    at = 0
    starts = sorted(claims)
    for start in [*starts, len(text)]:
        for match in _TOKEN.finditer(letters, at, max(at, start)):
            _token(match, text, drafts)
        if start not in claims:
            break
        at, parts = claims[start]
        if parts and parts[0].said and text[start - 1 : start] == "(" and drafts:
            _mark(drafts, ",")
        for part in parts:
            _phrase(part, drafts)
        consumed = text[start:at]
        # "King Jr." at the end of a sentence: the abbreviation's full stop is the sentence's too
        if consumed.endswith(".") and parts and not text[at:].strip(" \"'”’)*_"):
            _mark(drafts, ".")
    return drafts


def _with_marks_as_letters(text: str) -> str:
    """Accents and vowel signs that stand behind their letter (as in Hindi) are part of the word."""
    if text.isascii():
        return text
    return "".join("x" if unicodedata.category(c)[0] == "M" else c for c in text)


def _token(match: re.Match[str], text: str, drafts: list[_Draft]) -> None:
    kind, raw = match.lastgroup, text[match.start() : match.end()]
    if kind == "word":
        drafts.append(_Draft(raw.replace("’", "'").replace("‑", "-"), match.start(), match.end()))
    elif kind == "mark":
        _mark(drafts, _MARKS.get(raw, raw))
    elif kind == "line":
        _mark(drafts, ".")
    else:
        _mark(drafts, ",")


def _phrase(part: Part, drafts: list[_Draft]) -> None:
    for word in part.said.split():
        pause = word[-1] if word[-1] in ",;:" else ""
        bare = word.rstrip(",;:")
        if bare:
            drafts.append(_Draft(bare, part.start, part.end, pause))


def _mark(drafts: list[_Draft], mark: str) -> None:
    """Punctuation belongs to the word before it; of several the strongest stays."""
    if drafts and _STRENGTH[mark] > _STRENGTH[drafts[-1].mark]:
        drafts[-1].mark = mark


def _tied_to_source(drafts: list[_Draft], mapped: MappedText, source: str) -> tuple[SpokenWord, ...]:
    """Ranges in the source, widened over the marks and markup that cling to each word."""
    ranges: list[tuple[int, int]] = []
    for draft in drafts:
        start, end = mapped.source(draft.start, draft.end)
        while end > start + 1 and source[end - 1].isspace():
            end -= 1
        while start < end - 1 and source[start].isspace():
            start += 1
        if ranges and start < ranges[-1][1] and (start, end) != ranges[-1]:
            start = min(ranges[-1][1], end)
            if start == end:
                start, end = ranges[-1]
        ranges.append((start, end))
    groups = list(dict.fromkeys(ranges))
    wide: dict[tuple[int, int], tuple[int, int]] = {}
    reached = 0
    for index, (start, end) in enumerate(groups):
        following = groups[index + 1][0] if index + 1 < len(groups) else len(source)
        first, last = start, end
        while first > reached and not source[first - 1].isspace():
            first -= 1
        while last < following and not source[last].isspace():
            last += 1
        # "word(next": an opening mark belongs to what follows
        while last > end and last == following and source[last - 1] in '([{“‘"*_`':
            last -= 1
        wide[(start, end)] = (first, last)
        reached = last
    return tuple(SpokenWord(d.spoken, *wide[r], d.mark) for d, r in zip(drafts, ranges, strict=True))
