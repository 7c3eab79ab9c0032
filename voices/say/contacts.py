"""Addresses people read out: web links (in a word: the site), e-mail, files, telephone numbers, handles."""

from __future__ import annotations

import re

from voices.language import Language
from voices.say.letters import spelled
from voices.say.rule import Part, Rule, Spoken

_DOT = {"en": "dot", "de": "Punkt", "fr": "point", "es": "punto", "it": "punto", "pt": "ponto", "nl": "punt"}
_AT = {"en": "at", "de": "ät", "fr": "arobase", "es": "arroba", "it": "chiocciola", "pt": "arroba"}
_TLDS = (
    "com org net edu gov io ai dev app co uk de fr es it nl eu us info me tv ca au ch at be jp cn in br ru biz"
).split()
_READ_EXTENSIONS = frozenset("json yaml toml go java zip exe wav gif jpeg".split())
_FILES = (
    "py js ts md txt json yaml yml toml csv html css cpp rs go java sh pdf png jpg jpeg gif mp3 wav mp4 zip exe"
).split()

# decimals, grouped thousands, spans of years, network addresses
_OTHER_FIGURES = re.compile(r"\d+\.\d+|\d{1,3}(?:[ ,]\d{3})+|\d{4}\s?[-–]\s?\d{4}|\d{1,3}(?:\.\d{1,3}){3}")

_PHONE = re.compile(
    r"(?<![\w.,:/])(?:\+\d{1,3}[\s.-]?)?(?:\(\d{1,4}\)[\s.-]?)?\d{2,5}(?:[\s.\-–]\d{2,5}){1,5}(?![\w-]|[.,:]\d)"
    r"|(?<![\w.,:/])\+?\d{10,13}(?![\w-]|[.,:]\d)"
)


def _dotted(name: str, lang: Language) -> str:
    """ "example.com" -> "example dot com"; each name is left to be read as a word or spelled."""
    dot = _DOT.get(lang.code, "")
    return re.sub(r"\s+", " ", re.sub(r"\.", f" {dot} ", name)).strip()


def _name(name: str, lang: Language) -> str:
    """The words of an address part: underscores and hyphens are gaps, digits are said one by one."""
    name = re.sub(r"[_\-+%~]+", " ", name)
    name = re.sub(r"\d+", lambda m: f" {_figures(m[0], lang)} ", name)
    return re.sub(r"\s+", " ", name).strip()


def _figures(figures: str, lang: Language) -> str:
    return lang.number(figures) if len(figures) <= 2 and not figures.startswith("0") else lang.digits(figures)


def _site(host: str, lang: Language) -> str:
    host = re.sub(r":\d+$", "", host.removeprefix("www."))
    return _dotted(_name(host, lang), lang)


def _url(match: re.Match[str], lang: Language) -> Spoken:
    return _site(match["host"], lang)


def _email(match: re.Match[str], lang: Language) -> Spoken:
    """Local part, "at", host, each over its own letters."""
    at = match.end("local") - match.start()
    word = _AT.get(lang.code, "at")
    return [
        Part(_dotted(_name(match["local"], lang), lang), 0, at),
        Part(f"{word} {_site(match['host'], lang)}", at, len(match[0])),
    ]


def _file(match: re.Match[str], lang: Language) -> Spoken:
    name = match["name"]
    name = name.lower() if len(name) > 4 and name.isupper() else name
    ext = match["ext"]
    said = ext if ext in _READ_EXTENSIONS else spelled(ext)
    return _dotted(_name(name, lang), lang) + f" {_DOT.get(lang.code, '')} {said}"


def _handle(match: re.Match[str], lang: Language) -> Spoken:
    return f"{_AT.get(lang.code, 'at')} {_name(match['name'], lang)}"


def _hashtag(match: re.Match[str], lang: Language) -> Spoken:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", match["name"])
    return f"hashtag {_name(words, lang)}"


def _phone(match: re.Match[str], lang: Language) -> Spoken:
    """Digit by digit, with a pause between the groups as written."""
    raw = match[0]
    digits = re.sub(r"\D", "", raw)
    groups = re.findall(r"\d+", raw)
    local = len(groups) == 2 and [len(g) for g in groups] == [3, 4]
    if not local and not _is_number(raw, digits):
        return None
    at = [m.start() for m in re.finditer(r"(?:\+|\()?\d+", raw)]
    parts = []
    for index, start in enumerate(at):
        end = at[index + 1] if index + 1 < len(at) else len(raw)
        start = 0 if index == 0 else start
        pause = "," if index + 1 < len(at) else ""
        plus = "plus " if "+" in raw[start:end] else ""
        parts.append(Part(plus + lang.digits(groups[index]) + pause, start, end))
    return parts


def _is_number(raw: str, digits: str) -> bool:
    """Ask the telephone library whether this can be dialled; only for text that looks like it."""
    from phonenumbers import NumberParseException, is_possible_number, parse

    if len(digits) < 7 or (raw.isdigit() and (len(raw) < 10 or raw.endswith("000"))) or _OTHER_FIGURES.fullmatch(raw):
        return False
    try:
        return is_possible_number(parse(raw, "US"))
    except NumberParseException:
        return False


def rules(lang: Language) -> tuple[Rule, ...]:
    host = r"(?:[\w-]+\.)+[a-zA-Z]{2,}(?::\d+)?|localhost(?::\d+)?|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?"
    tail = r"(?:[/?#][^\s<>\"]*[^\s<>\".,;:!?)\]}'*_])?/?"
    common = (
        Rule(re.compile(r"\b(?:mailto:)?(?P<local>[\w.+%-]+)@(?P<host>(?:[\w-]+\.)+[a-zA-Z]{2,})"), _email),
        Rule(re.compile(rf"\b(?:https?|ftp|wss?)://(?P<host>{host}|[\w-]+){tail}"), _url),
        Rule(re.compile(r"\b[a-z][a-z+.-]*://\S+"), lambda m, _: "a link"),
        Rule(re.compile(rf"\b(?P<host>www\.(?:[\w-]+\.)+[a-zA-Z]{{2,}}){tail}"), _url),
        Rule(
            re.compile(rf"(?<![\w.@/-])(?P<host>(?:[a-z0-9-]+\.)+(?:{'|'.join(_TLDS)}))\b(?!\.\w|@){tail}", re.I),
            _url,
        ),
        Rule(
            re.compile(rf"(?<![\w.])(?P<name>[\w-]+(?:\.[\w-]+)*)\.(?P<ext>{'|'.join(_FILES)})\b(?!\.\w)"),
            _file,
        ),
        Rule(re.compile(r"(?<![\w.@])@(?P<name>\w[\w.]*\w)"), _handle),
        Rule(_PHONE, _phone),
    )
    if not lang.english:
        return common
    return (*common, Rule(re.compile(r"(?<!\w)#(?P<name>[A-Za-z]\w+)"), _hashtag))
