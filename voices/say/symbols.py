"""Signs: emoji and emoticons are silent (or named), arithmetic is read, the rest is a pause or nothing."""

from __future__ import annotations

import re

import emoji

from voices.language import Language
from voices.say.rule import Part, Rule, Spoken

_BETWEEN_FIGURES = {"+": "plus", "*": "times", "×": "times", "x": "times", "·": "times", "÷": "divided by",
                    "/": "divided by", "-": "minus", "−": "minus", "=": "equals", "^": "to the power of",
                    "<": "is less than", ">": "is greater than", "≤": "is at most", "≥": "is at least",
                    "≠": "is not equal to", "≈": "is about", "±": "plus or minus", "==": "equals", "!=": "is not",
                    "<=": "is at most", ">=": "is at least"}  # fmt: skip
_ANYWHERE = {"&": "and", "=": "equals", "≈": "about", "≠": "is not equal to", "≤": "at most", "≥": "at least",
             "×": "times", "÷": "divided by", "±": "plus or minus", "√": "square root of", "π": "pi", "∞": "infinity",
             "→": "to", "⇒": "means", "%": "percent", "§": "section", "°": "degrees", "µ": "micro", "Δ": "delta",
             "Ω": "ohm", "²": "squared", "³": "cubed", "€": "euros", "£": "pounds", "+": "plus", "@": "at",
             "α": "alpha", "β": "beta", "γ": "gamma", "λ": "lambda", "θ": "theta", "σ": "sigma", "∑": "the sum of",
             "∈": "in", "∴": "therefore"}  # fmt: skip
_TEXT_SIGNS = frozenset("©®™‼⁉ℹ↔↕→←↑↓")  # emoji by the standard, signs in a text
_EMOTICON = re.compile(
    r"(?:(?<![\w/])[:;=][-^']?[)(\]\[DPpOo3/\\|*]+|(?<!\S)[8xX][-^']?[)(\]\[DPpOo3/\\|*]+|<3+|\^_\^|-_-|¯\\_\(ツ\)_/¯)(?![\w/])"
)


def _silent(match: re.Match[str], lang: Language) -> Spoken:
    return ""


def emojis(text: str, lang: Language, named: bool) -> list[tuple[int, int, str]]:
    """The emoji of a text as (start, end, what is said); silent unless `named`."""
    if text.isascii():
        return []
    code = lang.code if lang.code in emoji.LANGUAGES else "en"
    found = []
    for match in emoji.analyze(text, join_emoji=True):
        value = match.value
        if isinstance(value, str) or match.chars in _TEXT_SIGNS:
            continue
        name = emoji.demojize(match.chars, language=code, delimiters=("", "")) if named else ""
        said = "" if name == match.chars else re.sub(r"[_\-]+", " ", name)
        found.append((value.start, value.end, said))
    return found


def _operator(match: re.Match[str], lang: Language) -> Spoken:
    return _BETWEEN_FIGURES[match["op"]]


def _power(match: re.Match[str], lang: Language) -> Spoken:
    power = match["p"]
    return {"2": "squared", "3": "cubed"}.get(power) or f"to the power of {lang.number(power)}"


_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


_TEX = {"times": "times", "cdot": "times", "div": "divided by", "pm": "plus or minus", "leq": "is at most",
        "geq": "is at least", "neq": "is not", "approx": "is about", "sqrt": "the square root of", "pi": "pi",
        "infty": "infinity", "sum": "the sum of", "int": "the integral of", "to": "to", "alpha": "alpha",
        "beta": "beta", "gamma": "gamma", "theta": "theta", "lambda": "lambda", "sigma": "sigma"}  # fmt: skip


def _tex(match: re.Match[str], lang: Language) -> Spoken:
    return _TEX.get(match["name"], "")


def _over(match: re.Match[str], lang: Language) -> Spoken:
    above, below = match["a"], match["b"]
    start = match.start("b") - match.start()
    if not (re.fullmatch(r"[\w. ]+", above) and re.fullmatch(r"[\w. ]+", below)):
        return None
    said = [lang.number(x) if x.isdigit() else x for x in (above, below)]
    return [Part(f"{said[0]} over", 0, start), Part(said[1], start, len(match[0]))]


def _raised(match: re.Match[str], lang: Language) -> Spoken:
    power = match[0].translate(_RAISED)
    return {"2": "squared", "3": "cubed"}.get(power) or f"to the {lang.number(power)}"


def _lowered(match: re.Match[str], lang: Language) -> Spoken:
    return lang.digits(match[0].translate(_LOWERED))


def _word(match: re.Match[str], lang: Language) -> Spoken:
    return _ANYWHERE[match[0]]


def _about(match: re.Match[str], lang: Language) -> Spoken:
    return "about"


def shapes() -> tuple[Rule, ...]:
    """Signs that would otherwise be taken apart by the rules for figures."""
    return (
        Rule(_EMOTICON, _silent),
        Rule(re.compile(r"\\frac\{(?P<a>[^{}]+)\}\{(?P<b>[^{}]+)\}"), _over),
        Rule(re.compile(r"\\(?P<name>[A-Za-z]+)"), _tex),
        Rule(re.compile(r"(?<=\d)x(?=\d)"), lambda m, _: "by"),
        Rule(re.compile(r"(?<=\b[fghFGH])\((?P<x>[a-z])\)"), lambda m, _: f"of {m['x']}"),
        Rule(re.compile(r"(?<=[\w)])\^\{?(?P<p>-?\d+)\}?"), _power),
    )


def english() -> tuple[Rule, ...]:
    operators = "|".join(re.escape(o) for o in sorted(_BETWEEN_FIGURES, key=len, reverse=True))
    value = r"[\w)%²³]"
    return (
        Rule(re.compile(rf"(?<=\d )(?P<op>{operators})(?= [\w(√-])"), _operator),
        Rule(re.compile(rf"(?<={value} )(?P<op>[=<>*≤≥≠≈±]|[<>=!]=)(?= [\w(√$-])"), _operator),
        Rule(re.compile(r"(?<=\d)(?P<op>[+*×÷=])(?=\d)"), _operator),
        Rule(re.compile(r"(?<=[\w)])[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+"), _raised),
        Rule(re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+"), _lowered),
        Rule(re.compile(r"[~≈](?=\s?[\d$])"), _about),
        Rule(re.compile("|".join(re.escape(s) for s in _ANYWHERE if s not in "+@")), _word),
        Rule(re.compile(r"(?<=\w )[+@](?= \w)|(?<=\w)\+(?=\w)"), _word),
        Rule(re.compile(r"(?<=\d)\+(?!\d)"), lambda m, _: "plus"),
        Rule(re.compile(r"(?<=\b[CF])#"), lambda m, _: "sharp"),
        Rule(re.compile(r"(?<=[A-Za-z])\+\+"), lambda m, _: "plus plus"),
    )


def other() -> tuple[Rule, ...]:
    return (Rule(_EMOTICON, _silent),)
