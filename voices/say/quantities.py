"""Amounts with something behind them: money, percent, units of measure."""

from __future__ import annotations

import re
from functools import lru_cache

from voices.language import Language
from voices.say.numbers import FIGURE, fraction
from voices.say.rule import Part, Rule, Spoken

_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₪": "ILS",
          "US$": "USD", "A$": "AUD", "C$": "CAD", "NZ$": "NZD", "HK$": "HKD", "R$": "BRL", "₿": "BTC"}  # fmt: skip
_CODES = "USD EUR GBP JPY CHF AUD CAD NZD INR CNY SEK NOK DKK PLN CZK BRL MXN ZAR KRW HUF".split()
_SCALES = {"k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million", "bn": "billion",
           "B": "billion", "b": "billion", "tn": "trillion", "T": "trillion"}  # fmt: skip
_SCALE = r"thousand|million|billion|trillion|hundred|mn|bn|tn|[kKmMbBT]"

# What stands behind a figure -> the unit's name in CLDR. Longer symbols win.
_UNITS = {
    "km/h": "speed-kilometer-per-hour", "kph": "speed-kilometer-per-hour", "kmh": "speed-kilometer-per-hour",
    "mph": "speed-mile-per-hour", "m/s": "speed-meter-per-second", "mi/h": "speed-mile-per-hour",
    "mpg": "consumption-mile-per-gallon", "km": "length-kilometer", "cm": "length-centimeter",
    "mm": "length-millimeter", "nm": "length-nanometer", "µm": "length-micrometer", "μm": "length-micrometer",
    "m": "length-meter", "mi": "length-mile", "ft": "length-foot", "yd": "length-yard", "in.": "length-inch",
    "km²": "area-square-kilometer", "km2": "area-square-kilometer", "m²": "area-square-meter",
    "m2": "area-square-meter", "cm²": "area-square-centimeter", "sq ft": "area-square-foot",
    "ft²": "area-square-foot", "sq mi": "area-square-mile", "ha": "area-hectare", "m³": "volume-cubic-meter",
    "m3": "volume-cubic-meter", "cm³": "volume-cubic-centimeter", "kg": "mass-kilogram", "g": "mass-gram",
    "mg": "mass-milligram", "µg": "mass-microgram", "μg": "mass-microgram", "lb": "mass-pound", "lbs": "mass-pound",
    "oz": "mass-ounce", "fl oz": "volume-fluid-ounce", "L": "volume-liter", "l": "volume-liter",
    "mL": "volume-milliliter", "ml": "volume-milliliter", "cl": "volume-centiliter", "dl": "volume-deciliter",
    "gal": "volume-gallon", "tbsp": "volume-tablespoon", "tsp": "volume-teaspoon", "°C": "temperature-celsius",
    "℃": "temperature-celsius", "°F": "temperature-fahrenheit", "℉": "temperature-fahrenheit",
    "° C": "temperature-celsius", "° F": "temperature-fahrenheit", "°": "angle-degree", "W": "power-watt",
    "kW": "power-kilowatt", "MW": "power-megawatt", "GW": "power-gigawatt", "kWh": "energy-kilowatt-hour",
    "hp": "power-horsepower", "V": "electric-volt", "mA": "electric-milliampere", "Ω": "electric-ohm",
    "Hz": "frequency-hertz", "kHz": "frequency-kilohertz", "MHz": "frequency-megahertz",
    "GHz": "frequency-gigahertz", "kB": "digital-kilobyte", "KB": "digital-kilobyte", "MB": "digital-megabyte",
    "GB": "digital-gigabyte", "TB": "digital-terabyte", "PB": "digital-petabyte", "Mb": "digital-megabit",
    "Gb": "digital-gigabit", "Mbit": "digital-megabit", "Gbit": "digital-gigabit", "h": "duration-hour",
    "hr": "duration-hour", "hrs": "duration-hour", "min": "duration-minute", "mins": "duration-minute",
    "s": "duration-second", "sec": "duration-second", "secs": "duration-second", "ms": "duration-millisecond",
    "µs": "duration-microsecond", "μs": "duration-microsecond", "ns": "duration-nanosecond",
    "kcal": "energy-kilocalorie", "cal": "energy-calorie", "kJ": "energy-kilojoule", "J": "energy-joule",
    "kPa": "pressure-kilopascal", "hPa": "pressure-hectopascal", "Pa": "pressure-pascal",
    "mmHg": "pressure-millimeter-ofhg",
    "psi": "pressure-pound-force-per-square-inch", "px": "graphics-pixel", "MP": "graphics-megapixel",
    "dpi": "graphics-dot-per-inch", "ly": "length-light-year", "Mbps": "digital-megabit", "Gbps": "digital-gigabit",
    "N": "force-newton",
}  # fmt: skip
_PER_SECOND = frozenset({"Mbps", "Gbps"})
_PER = {"h": "hour", "hr": "hour", "hour": "hour", "s": "second", "sec": "second", "second": "second",
        "min": "minute", "minute": "minute", "day": "day", "week": "week", "month": "month", "mo": "month",
        "yr": "year", "year": "year", "kg": "kilogram", "lb": "pound", "person": "person", "gal": "gallon",
        "night": "night", "L": "liter", "l": "liter", "g": "gram", "oz": "ounce", "mile": "mile"}  # fmt: skip


def _symbols() -> str:
    return "|".join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))


def _money(match: re.Match[str], lang: Language) -> Spoken:
    sign = match["sign"].strip()
    code = _SIGNS.get(sign, sign)
    minus = f"{lang.minus} " if match["minus"] else ""
    figures, scale, upto = match["n"], match["scale"], match["upto"]
    if re.fullmatch(r"\d+,\d\d", figures):
        figures = figures.replace(",", ".")  # "€3,50"
    start = match.start()
    per = _PER.get(match["per"] or "", "")
    after = f" per {per}" if per else ""
    if upto:
        split = match.start("upto") - start
        tail = f" {_SCALES.get(scale, scale)}" if scale else ""
        last = f"{lang.number(upto)}{tail} {lang.currency(code, 2)}" if tail else lang.money(upto, code)
        return [Part(f"{lang.number(figures)} to", 0, split), Part(last + after, split, len(match[0]))]
    if scale:
        return f"{minus}{lang.number(figures)} {_SCALES.get(scale, scale)} {lang.currency(code, 2)}{after}"
    return minus + lang.money(figures, code) + after


def _money_behind(match: re.Match[str], lang: Language) -> Spoken:
    figures = match["n"] if lang.english else _own(match["n"], lang)
    return lang.money(figures, _SIGNS.get(match["sign"], match["sign"]))


def _own(figures: str, lang: Language) -> str:
    return figures if lang.decimal != "." or "," not in figures else figures.replace(",", "")


def _cents(match: re.Match[str], lang: Language) -> Spoken:
    return f"{lang.number(match['n'])} {'cent' if match['n'] == '1' else 'cents'}"


def _percent(match: re.Match[str], lang: Language) -> Spoken:
    word = lang.unit("concentr-percent", True) or "%"
    upto = match.groupdict().get("upto")
    if upto:
        split = match.start("upto") - match.start()
        return [
            Part(f"{lang.number(match['n'])} to", 0, split),
            Part(f"{lang.number(upto)} {word}", split, len(match[0])),
        ]
    return f"{lang.number(match['n'])} {word}"


def _unit(match: re.Match[str], lang: Language) -> Spoken:
    symbol, figures = match["unit"], match["n"]
    upto = match.groupdict().get("upto")
    one = (upto or figures).lstrip("-−") == "1"
    if symbol == "°" and re.match(r"\s?[NSEW]\b", match.string[match.end() :]):
        one = False
    name = lang.unit(_UNITS[symbol], not one)
    if not name:
        return None
    if symbol in _PER_SECOND:
        name += " per second"
    per = _PER.get(match.groupdict().get("per") or "", "")
    name += f" per {per}" if per else ""
    joined = match.groupdict().get("join")
    if joined == "-":
        name = lang.unit(_UNITS[symbol], False)  # "a 5-km run"
    if upto:
        split = match.start("upto") - match.start()
        return [
            Part(f"{lang.number(figures)} to", 0, split),
            Part(f"{lang.number(upto)} {name}", split, len(match[0])),
        ]
    at = match.start("unit") - match.start()
    return [Part(lang.number(figures), 0, at), Part(name, at, len(match[0]))]


def _half(match: re.Match[str], lang: Language) -> Spoken:
    """ "1/2 kg", "1 1/2 tsp": below one, the unit stays single."""
    said = fraction(int(match["a"]), int(match["b"]), lang)
    if not match["whole"]:
        return f"{said} {lang.unit(_UNITS[match['unit']], False)}"
    said = re.sub("^one ", "a ", said)
    return f"{lang.number(match['whole'])} and {said} {lang.unit(_UNITS[match['unit']], True)}"


def _feet(match: re.Match[str], lang: Language) -> Spoken:
    feet = f"{lang.number(match['ft'])} {'foot' if match['ft'] == '1' else 'feet'}"
    return f"{feet} {lang.number(match['inch'])}" if match["inch"] else feet


def _feet_inches(match: re.Match[str], lang: Language) -> Spoken:
    inches = f"{lang.number(match['inch'])} {'inch' if match['inch'] == '1' else 'inches'}"
    return f"{lang.number(match['ft'])} {'foot' if match['ft'] == '1' else 'feet'} {inches}"


def _inches(match: re.Match[str], lang: Language) -> Spoken:
    return f"{lang.number(match['n'])} {'inch' if match['n'] == '1' else 'inches'}"


def _bare(match: re.Match[str], lang: Language) -> Spoken:
    """ "km/h" without a figure."""
    return lang.unit(_UNITS[match["unit"]], True)


def _times(match: re.Match[str], lang: Language) -> Spoken:
    return f"{lang.number(match['n'])} times"


@lru_cache(maxsize=2)
def english() -> tuple[Rule, ...]:
    signs = "|".join(re.escape(s) for s in sorted(_SIGNS, key=len, reverse=True))
    codes = "|".join(_CODES)
    per = r"(?:\s?/\s?(?P<per>[a-zA-Z]+)\b)?"
    behind = r"(?![\w²³]|[-/]\w)"
    return (
        Rule(
            re.compile(
                rf"(?P<minus>(?<!\w)[-−])?(?P<sign>{signs}|\b(?:{codes})\b\s)\s?(?P<n>\d+,\d{{2}}(?![\d.])|{FIGURE}|\.\d{{2}})"
                rf"(?:\s?[-–—]\s?(?:{signs})?(?P<upto>{FIGURE}))?(?:[\s-]?(?P<scale>{_SCALE})\b)?{per}"
            ),
            _money,
        ),
        Rule(re.compile(rf"(?<![\w.,])(?P<n>{FIGURE})\s?(?P<sign>€|£|{codes})(?!\w)"), _money_behind),
        Rule(re.compile(rf"(?<![\w.,])(?P<n>{FIGURE})\s?¢"), _cents),
        Rule(
            re.compile(rf"(?<![\w.,])(?P<n>[-−+]?(?:{FIGURE}))(?:\s?%?\s?[-–—]\s?(?P<upto>{FIGURE}))?\s?%"),
            _percent,
        ),
        Rule(
            re.compile(r"(?<![\w.])(?P<ft>\d+)['′’]\s?(?:(?P<inch>\d{1,2}(?:\.\d)?)[\"″”]|(?=\s?tall))"),
            _feet,
        ),
        Rule(re.compile(r"(?<![\w.])(?P<ft>\d+)\s?ft\.?\s(?P<inch>\d{1,2})\s?in\b\.?"), _feet_inches),
        Rule(re.compile(r"(?<![\w.])(?P<n>\d+(?:\.\d+)?)[\"″](?=[\s.,)x×]|$)"), _inches),
        Rule(
            re.compile(rf"(?<![\w.,/])(?:(?P<whole>\d+)\s)?(?P<a>\d)/(?P<b>[2-9])\s(?P<unit>{_symbols()}){behind}"),
            _half,
        ),
        Rule(
            re.compile(
                rf"(?:(?<=\dx)|(?<![\w.,]))(?P<n>[-−+]?(?:{FIGURE}))(?:\s?[-–—]\s?(?P<upto>{FIGURE}))?"
                rf"(?P<join>[ \u00a0\u202f-]?)(?P<unit>{_symbols()})(?![\w²³]|-\w){per}"
                r"(?:(?<=[a-z])\.(?=\s[a-z\d]|[,;)]))?"
            ),
            _unit,
        ),
        Rule(re.compile(r"(?<![\w.,])(?P<n>\d+(?:\.\d+)?)[x×](?!\w|\s?[\d+=*/^-])"), _times),
        Rule(re.compile(r"(?:(?<=\bin )|(?<=\bof ))(?P<unit>kg|km|cm|mm|mg|mL|ml|lbs|oz|kWh|GB|MB|TB|kcal)\b"), _bare),
        Rule(re.compile(r"(?<![\w/])(?P<unit>km/h|mph|kWh|GHz|MHz|kHz|°C|°F|m/s|km²|m²)(?!\w)"), _bare),
    )


@lru_cache(maxsize=2)
def other() -> tuple[Rule, ...]:
    figure = r"[-−]?\d+(?:[.,\u00a0\u202f]\d+)*"
    signs = "|".join(re.escape(s) for s in _SIGNS)
    return (
        Rule(re.compile(rf"(?<!\w)(?P<n>{figure})[ \u00a0\u202f]?(?P<sign>{signs})"), _money_behind),
        Rule(re.compile(rf"(?P<sign>{signs})\s?(?P<n>{figure})"), _money_behind),
        Rule(re.compile(rf"(?<!\w)(?P<n>{figure})[ \u00a0\u202f]?%"), _percent),
        Rule(re.compile(rf"(?<!\w)(?P<n>{figure})[ \u00a0\u202f]?(?P<unit>{_symbols()})(?![\w/²³])"), _unit),
    )
