"""Dates and times of day."""

from __future__ import annotations

import re
from functools import lru_cache

from voices.language import Language, language
from voices.say.rule import Part, Rule, Spoken

_NO_MORE = r"(?![\w]|[.,]\d)"


def _valid(year: int | None, month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31 and (year is None or 1000 <= year <= 2999)


def _said(lang: Language, year: int | None, month: int, day: int) -> str:
    if not lang.english:
        return f"{lang.whole(day)} {lang.month(month)}" + (f" {lang.year(year)}" if year else "")
    return f"{lang.month(month)} {lang.ordinal(day)}" + (f", {lang.year(year)}" if year else "")


def _iso(match: re.Match[str], lang: Language) -> Spoken:
    year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
    return _said(lang, year, month, day) if _valid(year, month, day) else None


def _slashed(match: re.Match[str], lang: Language) -> Spoken:
    first, second, year = int(match["a"]), int(match["b"]), int(match["y"])
    if len(match["y"]) == 2:
        year += 2000 if year < 50 else 1900
    # The month comes first in American dates, elsewhere the day; a figure beyond 12 settles it.
    american = lang.english and match["sep"] == "/"
    month, day = (first, second) if (american and first <= 12) or second > 12 else (second, first)
    return _said(lang, year, month, day) if _valid(year, month, day) else None


def _month_day(match: re.Match[str], lang: Language) -> Spoken:
    month, day = lang.months()[match["month"].lower().rstrip(".")], int(match["d"])
    if not 1 <= day <= 31 or match["month"].lower() in ("may", "mar") and match["month"][0].islower():
        return None
    origin = match.start()
    day_at, day_end = match.start("d") - origin, match.end("day") - origin
    said = lang.ordinal(day)
    parts = [Part(lang.month(month), 0, day_at)]
    if match["upto"]:
        upto_at = match.start("upto") - origin
        parts.append(Part(f"{said} to", day_at, upto_at))
        day_at, said, day_end = upto_at, lang.ordinal(int(match["upto"])), match.end("upto") - origin
    parts.append(Part(said + ("," if match["y"] else ""), day_at, day_end))
    if match["y"]:
        parts.append(Part(lang.year(int(match["y"])), match.start("y") - origin, match.end("y") - origin))
    return parts


def _day_month(match: re.Match[str], lang: Language) -> Spoken:
    month, day = lang.months()[match["month"].lower().rstrip(".")], int(match["d"])
    if not 1 <= day <= 31:
        return None
    origin = match.start()
    month_at, month_end = match.start("month") - origin, match.end("month") - origin
    if lang.english:
        parts = [
            Part(f"the {lang.ordinal(day)} of", 0, month_at),
            Part(lang.month(month), month_at, month_end),
        ]
        if match["the"] is not None:
            parts[0] = Part(f"{lang.ordinal(day)} of", 0, month_at)
    else:
        parts = [Part(lang.whole(day), 0, month_at), Part(lang.month(month), month_at, month_end)]
    if match["y"]:
        parts.append(Part(lang.year(int(match["y"])), match.start("y") - origin, match.end("y") - origin))
    return parts


def _month_year(match: re.Match[str], lang: Language) -> Spoken:
    at = match.start("y") - match.start()
    month = lang.month(lang.months()[match["month"].lower().rstrip(".")])
    return [Part(month, 0, at), Part(lang.year(int(match["y"])), at, len(match[0]))]


def _month_alone(match: re.Match[str], lang: Language) -> Spoken:
    return lang.month(lang.months()[match["month"].lower()])


_DAYS = {"mon": "Monday", "tue": "Tuesday", "tues": "Tuesday", "wed": "Wednesday", "thu": "Thursday",
         "thur": "Thursday", "thurs": "Thursday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday"}  # fmt: skip


def _weekday(match: re.Match[str], lang: Language) -> Spoken:
    return _DAYS[match["day"].lower()]


def _weekdays(match: re.Match[str], lang: Language) -> Spoken:
    at = match.start("b") - match.start()
    return [Part(f"{_DAYS[match['a'].lower()]} to", 0, at), Part(_DAYS[match["b"].lower()], at, len(match[0]))]


def _clock(match: re.Match[str], lang: Language) -> Spoken:
    """ "9:30 a.m.", "14:05", "9:00": hours, minutes, half of the day, each over its own letters."""
    hour, minute = int(match["h"]), match["min"]
    half = re.sub(r"[^apm]", "", (match["half"] or "").lower())
    if hour > 24 or (minute and int(minute) > 59):
        return None
    origin = match.start()
    end = (match.start("half") if half else match.end()) - origin
    if not minute:
        said = lang.whole(hour)
    elif int(minute) == 0:
        said = lang.whole(hour) if half else (f"{lang.whole(hour)} o'clock" if 1 <= hour <= 12 else "")
        said = said or f"{lang.whole(hour)} hundred"
    elif minute.startswith("0"):
        said = f"{lang.whole(hour)} oh {lang.whole(int(minute))}"
    else:
        said = f"{lang.whole(hour)} {lang.whole(int(minute))}"
    if match["sec"]:
        said += f" and {lang.whole(int(match['sec']))} seconds"
    parts = [Part(said, 0, end)]
    if half:
        parts.append(Part(".".join(half.upper()), end, len(match[0])))
    return parts


def _until(match: re.Match[str], lang: Language) -> Spoken:
    return "to"


def _hour_half(match: re.Match[str], lang: Language) -> Spoken:
    if not 1 <= int(match["h"]) <= 12:
        return None
    at = match.start("half") - match.start()
    half = re.sub(r"[^apm]", "", match["half"].lower())
    return [Part(lang.whole(int(match["h"])), 0, at), Part(".".join(half.upper()), at, len(match[0]))]


def _ratio(match: re.Match[str], lang: Language) -> Spoken:
    at = match.start("b") - match.start()
    return [
        Part(f"{lang.whole(int(match['a']))} to", 0, at),
        Part(lang.whole(int(match["b"])), at, len(match[0])),
    ]


_HALF = r"(?P<half>[aApP]\.?\s?[mM](?:\.(?!\w)|\b))"


def _months(lang: Language) -> str:
    names = sorted(lang.months(), key=len, reverse=True)
    return "|".join(re.escape(n) for n in names)


@lru_cache(maxsize=2)
def english() -> tuple[Rule, ...]:
    months = _months(language("en"))
    days = "|".join(f"{d.capitalize()}" for d in sorted(_DAYS, key=len, reverse=True))
    short = "jan|feb|aug|sept|sep|oct|nov|dec|apr|jun|jul|mar"
    return (
        Rule(re.compile(r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-]|\.\d)"), _iso),
        Rule(
            re.compile(r"(?<![\w/.])(?P<a>\d{1,2})(?P<sep>[/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?![\w/]|\.\d)"),
            _slashed,
        ),
        Rule(
            re.compile(
                rf"\b(?P<month>(?:{months})\.?)\s(?P<day>(?P<d>\d{{1,2}})(?:st|nd|rd|th)?)"
                rf"(?:\s?[-–]\s?(?P<upto>\d{{1,2}})(?:st|nd|rd|th)?)?(?:,?\s(?P<y>\d{{4}}))?{_NO_MORE}(?!:\d)",
                re.IGNORECASE,
            ),
            _month_day,
        ),
        Rule(
            re.compile(
                rf"(?<![\w.,:])(?P<the>(?<=the )|(?<=The ))?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? "
                rf"(?P<month>(?:{months})\b\.?)(?:,?\s(?P<y>\d{{4}}){_NO_MORE})?",
                re.IGNORECASE,
            ),
            _day_month,
        ),
        Rule(
            re.compile(rf"\b(?P<month>(?:{months})\.?),?\s(?P<y>[12]\d{{3}}){_NO_MORE}", re.IGNORECASE),
            _month_year,
        ),
        Rule(re.compile(rf"\b(?P<month>(?i:{short}))\.(?=\s[a-z]|$|[,;)])"), _month_alone),
        Rule(re.compile(rf"\b(?P<a>{days})\.?\s?[-–]\s?(?P<b>{days})\b"), _weekdays),
        Rule(
            re.compile(rf"(?:(?<=\bon )|(?<=\bthis )|(?<=\bnext )|(?<=\blast )|(?<=\bevery ))(?P<day>{days})\b\.?"),
            _weekday,
        ),
        Rule(re.compile(r"\b(?P<day>(?i:tues?|wed|thurs?|thu|mon|fri))\.(?=[\s,;)]|$)"), _weekday),
        Rule(
            re.compile(r"\b(?P<day>(?:Tues?|Wed|Thurs?|Thu|Mon|Fri|Sat|Sun))(?=,? (?:\d|[A-Z][a-z]{2,8}\.? \d))"),
            _weekday,
        ),
        Rule(
            re.compile(rf"(?<![\w.,:])(?P<h>\d{{1,2}}):(?P<min>\d{{2}})(?::(?P<sec>\d{{2}}))?(?:\s?{_HALF})?(?![:\d])"),
            _clock,
        ),
        Rule(re.compile(rf"(?<![\w.,:])(?P<h>\d{{1,2}})\s?{_HALF}"), _hour_half),
        Rule(
            re.compile(r"(?:(?<=[apAP]\.[mM]\.)|(?<=[apAP][mM])|(?<=:\d\d))\s?[-–—]\s?(?=\d{1,2}[:\s]?[\dapAP])"),
            _until,
        ),
        Rule(re.compile(r"(?<![\w.,:])(?P<a>\d+):(?P<b>\d+)(?![:\w]|\.\d)"), _ratio),
    )


def other(lang: Language) -> tuple[Rule, ...]:
    months = _months(lang)
    return (
        Rule(re.compile(r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-])"), _iso),
        Rule(
            re.compile(r"(?<![\w/.])(?P<a>\d{1,2})(?P<sep>[/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?![\w/])"),
            _slashed,
        ),
        Rule(
            re.compile(
                rf"(?<![\w.,:])(?P<the>(?!))?(?P<d>\d{{1,2}})\.?(?: de)? (?P<month>(?:{months})\b)"
                r"(?:(?: de)? (?P<y>\d{4})(?!\w))?",
                re.IGNORECASE,
            ),
            _day_month,
        ),
    )
