"""Numbers, units and names in words, per language, from num2words and the CLDR data in babel.

English has all rules. For other languages the rules that depend on English habits are left out; numbers, money,
units and months follow the language where the libraries know it, and what is left as figures is read by the
voice's own phonemiser.
"""

from __future__ import annotations

import re
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.numbers import get_currency_name
from babel.units import format_unit
from num2words import CONVERTER_CLASSES, num2words

_LONGEST = 15  # digits; longer figures are read digit by digit


class Language:
    """One language's way to say figures; get it with `language("en")`."""

    def __init__(self, code: str) -> None:
        parts = code.replace("-", "_").split("_")
        self.code = parts[0].lower()
        self.english = self.code == "en"
        regional = "_".join([self.code, *(p.upper() for p in parts[1:2])])
        self._num: str | None = next((c for c in (regional, self.code) if c in CONVERTER_CLASSES), None)
        try:
            self.locale = Locale.parse(self.code)
        except (UnknownLocaleError, ValueError):
            self.locale = Locale.parse("en")
        symbols = self.locale.number_symbols.get("latn", {})
        self.decimal: str = symbols.get("decimal", ".")
        self.group: str = symbols.get("group", ",")
        converter = CONVERTER_CLASSES[self._num] if self._num else None
        point = getattr(converter, "pointword", None)
        # Where num2words has no single word for it (Russian, Japanese), the phonemiser reads the figures itself.
        self.point: str = point if isinstance(point, str) and point.isalpha() else ""
        self.minus: str = str(getattr(converter, "negword", "") or "minus").strip()

    def whole(self, value: int) -> str:
        """A cardinal number: 21 -> "twenty-one"."""
        return self._words(value, "cardinal")

    def ordinal(self, value: int) -> str:
        return self._words(value, "ordinal")

    def year(self, value: int) -> str:
        if self.english and 2000 <= value <= 2009:
            return self.whole(value).replace(" and", "")
        return self._words(value, "year" if self.code in ("en", "de") else "cardinal")

    def digits(self, figures: str) -> str:
        """Digit by digit: "007" -> "zero zero seven"."""
        return " ".join(self.whole(int(d)) for d in figures if d.isdigit())

    def number(self, figures: str) -> str:
        """A figure as written in this language ("1,234.50", "-3", "007") in words."""
        if self._num is None or (self.decimal in figures and not self.point):
            return figures
        sign = ""
        if figures[:1] in "-−":
            sign, figures = f"{self.minus} ", figures[1:]
        elif figures[:1] == "+":
            sign, figures = "plus ", figures[1:]
        whole, _, fraction = figures.partition(self.decimal)
        whole = re.sub(r"\D", "", whole)
        if not whole and not fraction:
            return ""
        if len(whole) > _LONGEST or (len(whole) > 1 and whole.startswith("0") and not fraction):
            said = self.digits(whole)
        else:
            said = self.whole(int(whole)) if whole else ""
        if fraction:
            said = f"{said} {self.point} {self.digits(fraction)}".strip()
        return sign + said

    def money(self, figures: str, currency: str) -> str:
        """An amount with its currency: ("3.50", "USD") -> "three dollars and fifty cents"."""
        whole, _, fraction = figures.partition(self.decimal)
        plain = re.sub(r"\D", "", whole) or "0"
        if not fraction or not fraction.strip("0"):
            return f"{self.number(whole)} {self.currency(currency, 1 if plain == '1' else 2)}"
        if len(fraction) == 2 and len(plain) <= _LONGEST and self._num:
            try:
                amount = f"{plain}.{fraction}"
                said = num2words(amount, lang=self._num, to="currency", currency=currency)
                major, comma, minor = str(said).rpartition(", ")
                major = major.replace(",", "").replace("pounds sterling", "pounds").replace("pound sterling", "pound")
                major = re.sub(r"\beuro$", "euros" if plain != "1" else "euro", major) if self.english else major
                if self.english and int(plain) == 0:
                    return minor
                return f"{major} and {minor}" if comma and self.english else str(said).replace(",", "")
            except (NotImplementedError, KeyError, ValueError):
                pass
        return f"{self.number(figures)} {self.currency(currency, 2)}"

    def currency(self, code: str, count: int) -> str:
        """The everyday name: "dollars", not "US dollars"."""
        name = str(get_currency_name(code, count=count, locale=self.locale))
        return re.sub(r"^(US|British|Japanese|Chinese|Indian|Russian) | sterling$", "", name)

    def unit(self, cldr: str, plural: bool) -> str:
        """A unit's name: ("length-kilometer", True) -> "kilometers"; empty where CLDR does not know it."""
        try:
            # "few" and "many" differ in some languages: five is the safest plural, as amounts go
            said = format_unit(5 if plural else 1, cldr, "long", locale=self.locale)
        except ValueError:
            return ""
        return re.sub(r"^[\d\s\u00a0]+|[\s\u00a0]*\b[15]\b", "", str(said)).strip()

    def months(self) -> dict[str, int]:
        """Lower-case month names and abbreviations (without full stop) -> 1…12."""
        found: dict[str, int] = {}
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, name in self.locale.months[context][width].items():
                    found[str(name).lower().rstrip(".")] = int(number)
        if self.english:
            found["sept"] = 9
        return {name: number for name, number in found.items() if not name.isdigit()}

    def month(self, number: int) -> str:
        return str(self.locale.months["format"]["wide"][number])

    def _words(self, value: int, form: str) -> str:
        if self._num is None or abs(value) >= 10 ** (_LONGEST + 1):
            return str(value)
        try:
            said = str(num2words(value, lang=self._num, to=form))
        except (NotImplementedError, KeyError, OverflowError, ValueError, TypeError):
            return str(value)
        return said.replace(",", "").strip()


@lru_cache(maxsize=16)
def language(code: str) -> Language:
    """The language for a code such as "en", "en-us" or "de"; unknown ones read figures as they stand."""
    return Language(code)
