"""Plain figures: cardinals, decimals, ordinals, decades, ranges, fractions, versions, years."""

from __future__ import annotations

import re

from voices.language import Language
from voices.say.rule import Part, Rule, Spoken

FIGURE = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_FREE = r"(?<![\w.,])"  # not in the middle of a word or figure
_NO_MORE = r"(?![\w]|[.,]\d)"

# "1234 was", not "1234 cats": words that follow a year
_AFTER_YEAR = frozenset(
    "was is has as its his this thus plus versus us perhaps always sees saw and the when were will had in on at to by "
    "for from with until after before because but or that it he she they we there olympics elections".split()
)
_BEFORE_YEAR = frozenset("in since year until during from before after by of".split())
_BEFORE_NUMBER = frozenset("room number code pin route flight extension port".split())
_COUNTED = frozenset("people men women children percent dollars euros pounds".split())


def is_year(text: str, start: int, end: int) -> bool:
    """Is the four-digit figure at `start:end` a year, by its value and what stands around it?"""
    before = re.search(r"([^\W\d_]+)[.,]?\s*[\"'(“‘]?$", text[:start])
    trigger = before[1].lower() if before else ""
    if not (1000 if trigger in _BEFORE_YEAR else 1100) <= int(text[start:end]) <= 2099:
        return False
    if trigger in _BEFORE_NUMBER or text[start - 1 : start] in ("$", "€", "£", "#"):
        return False
    after = re.match(r"[ -]([a-z]+)", text[end:])
    if not after or after[1] in _AFTER_YEAR:
        return True
    counted = after[1] in _COUNTED or (after[1].endswith("s") and len(after[1]) > 3)
    return not counted or trigger in ("year", "since")


def _year(match: re.Match[str], lang: Language) -> Spoken:
    if not is_year(match.string, *match.span("year")):
        return None
    return lang.year(int(match["year"]))


def _years(match: re.Match[str], lang: Language) -> Spoken:
    first, second = match["a"], match["b"]
    if not is_year(match.string, *match.span("a")):
        return None
    if len(second) == 4 and not 1100 <= int(second) <= 2099:
        return None
    if len(second) == 2 and int(second) <= int(first[2:]):
        return None
    later = lang.year(int(second)) if len(second) == 4 else lang.year(int(first[:2] + second)).split()[-1]
    start = match.start("b") - match.start()
    return [Part(f"{lang.year(int(first))} to", 0, start), Part(later, start, len(match[0]))]


def _decade(match: re.Match[str], lang: Language) -> Spoken:
    century, tens = match["century"], match["tens"]
    names = {"0": "hundreds", "1": "tens"}
    last = names.get(tens) or re.sub(r"y$", "ies", lang.whole(int(tens) * 10))
    if tens == "0" and century == "20":
        return "two thousands"
    return f"{lang.whole(int(century))} {last}" if century else last


def _ordinal(match: re.Match[str], lang: Language) -> Spoken:
    return lang.ordinal(int(match["n"].replace(",", "")))


def _range(match: re.Match[str], lang: Language) -> Spoken:
    start = match.start("b") - match.start()
    return [
        Part(f"{lang.number(match['a'])} to", 0, start),
        Part(lang.number(match["b"]), start, len(match[0])),
    ]


_DENOMINATORS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip


def fraction(above: int, below: int, lang: Language) -> str:
    one, many = _DENOMINATORS.get(below) or (lang.ordinal(below), lang.ordinal(below) + "s")
    return f"{lang.whole(above)} {one if above == 1 else many}"


def _fraction(match: re.Match[str], lang: Language) -> Spoken:
    above, below = int(match["a"]), int(match["b"])
    whole = f"{lang.whole(int(match['whole']))} and " if match["whole"] else ""
    if (above, below) in ((24, 7), (9, 11)) or above == below:
        return f"{lang.whole(above)} {lang.whole(below)}"
    if below == 0 or (above >= below and not whole) or below > 32 or below in (10, 1):
        return f"{whole}{lang.whole(above)} {'out of' if above <= below else 'over'} {lang.whole(below)}"
    return whole + fraction(above, below, lang)


def _vulgar(match: re.Match[str], lang: Language) -> Spoken:
    said = fraction(*_VULGAR[match["f"]], lang)
    if not match["whole"]:
        return said
    return f"{lang.number(match['whole'])} and {re.sub('^one ', 'a ', said)}"


def _dotted(match: re.Match[str], lang: Language) -> Spoken:
    """A version or an address: "2.0.1", "192.168.0.1"."""
    parts = [lang.number(p) if p == "0" or p[0] != "0" else lang.digits(p) for p in match["n"].split(".")]
    word = "dot" if len(parts) == 4 else "point"
    return ("version " if match["v"] else "") + f" {word} ".join(parts)


def _spaced(match: re.Match[str], lang: Language) -> Spoken:
    return lang.number(re.sub(r"\s", "", match[0]))


def _scientific(match: re.Match[str], lang: Language) -> Spoken:
    power = lang.number(match["e"].lstrip("+"))
    return f"{lang.number(match['n'])} times ten to the {power}"


def _pairs(match: re.Match[str], lang: Language) -> Spoken:
    """A room or a flight in pairs of figures: 1205 -> "twelve oh five"."""
    head, tail = match[0][:-2], match[0][-2:]
    if head.startswith("0"):
        return lang.digits(match[0])
    if tail == "00":
        return f"{lang.whole(int(head))} hundred"
    return f"{lang.whole(int(head))} {'oh ' if tail[0] == '0' else ''}{lang.whole(int(tail))}"


_DIALLED = "|".join(rf"(?<=\b{word} )" for word in ("[Cc]all", "[Dd]ial", "[Pp]in", "PIN", "[Cc]ode"))


def _digits(match: re.Match[str], lang: Language) -> Spoken:
    return lang.digits(match[0])


def _scaled(match: re.Match[str], lang: Language) -> Spoken:
    """ "10k users"; but a 10K run keeps its letter."""
    word = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion"}[match["scale"]]
    return f"{lang.number(match['n'])} {word}"


def _lines(match: re.Match[str], lang: Language) -> Spoken:
    """ "1080p"."""
    head, tail = match["n"][:-2], match["n"][-2:]
    return f"{lang.whole(int(head))} {lang.whole(int(tail)) if tail != '00' else 'hundred'} P"


def _numbered(match: re.Match[str], lang: Language) -> Spoken:
    return f"number {lang.number(match['n'])}"


def _cardinal(match: re.Match[str], lang: Language) -> Spoken:
    return lang.number(match[0])


def _any_language(match: re.Match[str], lang: Language) -> Spoken:
    if " " in match[0] and not lang.group.isspace():
        return None
    text = re.sub(r"\s", "", match[0].replace(lang.group, ""))
    if not re.fullmatch(rf"[-−]?\d+(?:{re.escape(lang.decimal)}\d+)?", text):
        return None
    return lang.number(text)


def shapes() -> tuple[Rule, ...]:
    """Figures whose shape alone says what they are: these come before units ("1990s" has no seconds)."""
    return (
        Rule(re.compile(r"(?<![\w.])(?P<v>[vV])?(?P<n>\d+(?:\.\d+){2,3})(?![\w]|\.\d)"), _dotted),
        Rule(re.compile(r"(?<![\w.])(?P<v>[vV])(?P<n>\d+(?:\.\d+)?)(?![\w]|\.\d)"), _dotted),
        Rule(re.compile(rf"{_FREE}(?P<a>\d{{4}})\s?[-–—]\s?(?P<b>\d{{4}}|\d{{2}}){_NO_MORE}"), _years),
        Rule(re.compile(r"(?<!\w)['’]?(?P<century>(?:1[1-9]|20)?)(?P<tens>\d)0['’]?s\b"), _decade),
        Rule(re.compile(r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})*|\d+)(?:st|nd|rd|th|ST|ND|RD|TH)\b"), _ordinal),
        Rule(re.compile(r"(?<![\w.])(?P<n>\d+(?:\.\d+)?)[eE](?P<e>[-+]?\d{1,3})(?!\w)"), _scientific),
        Rule(re.compile(rf"(?:{_DIALLED})\d{{3,8}}\b"), _digits),
        Rule(
            re.compile(r"(?<![\w$€£¥₹.])(?P<n>\d+(?:\.\d+)?)(?P<scale>[kKMB])(?= [a-z])(?! (?:run|race|res|video|tv))"),
            _scaled,
        ),
        Rule(re.compile(r"(?<!\w)(?P<n>\d{3,4})p\b"), _lines),
        Rule(re.compile(rf"(?:#|№\s?|\bNo\.\s?|\bno\.\s?|\bNr\.\s?)(?P<n>\d+){_NO_MORE}"), _numbered),
        Rule(re.compile(r"(?:(?<=\b[Rr]oom )|(?<=\b[Ff]light )|(?<=\b[Rr]oute ))\d{3,4}(?=[A-Z]?\b)"), _pairs),
    )


def figures() -> tuple[Rule, ...]:
    """Every other figure; asked last."""
    return (
        Rule(
            re.compile(r"(?<![\w/.])(?:(?P<whole>\d+)\s)?(?P<a>\d{1,3})[/⁄](?P<b>\d{1,3})(?![\w/]|\.\d)"),
            _fraction,
        ),
        Rule(re.compile(rf"(?:(?P<whole>\d+)\s?)?(?P<f>[{''.join(_VULGAR)}])"), _vulgar),
        Rule(re.compile(rf"(?<![\w.,-])(?P<a>{FIGURE})(?:[–—]|\s[–—]\s|-)(?P<b>{FIGURE})(?![\w-]|[.,]\d)"), _range),
        Rule(re.compile(rf"{_FREE}(?P<year>\d{{4}})(?!\w|[.,]\d|-\w)"), _year),
        Rule(re.compile(rf"{_FREE}\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+{_NO_MORE}"), _spaced),
        Rule(re.compile(rf"(?<![\w.,)\]])[-−+](?:{FIGURE})"), _cardinal),
        Rule(re.compile(FIGURE + r"|(?<!\w)\.\d+"), _cardinal),
    )


def other() -> tuple[Rule, ...]:
    return (
        Rule(
            re.compile(r"(?<![\w])[-−]?(?:\d{1,3}(?: \d{3})+(?!\d)|\d+)(?:[.,\u00a0\u202f]\d+)*(?!\w)"), _any_language
        ),
    )
