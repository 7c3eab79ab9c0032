"""Inline code read aloud: `pip install`, `snake_case`, `--verbose`, `file.py`, `foo()`."""

from __future__ import annotations

import re

from voices.language import Language

_SIGNS = {"==": "equals", "!=": "is not", "<=": "at most", ">=": "at least", "->": "to", "=>": "to", "&&": "and",
          "||": "or", "=": "equals", "+": "plus", "*": "star", "/": "slash", "@": "at", "#": "hash", "%": "percent",
          "&": "and", "<": "less than", ">": "greater than", "$": "dollar", "~": "tilde", "|": "pipe"}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<flag>(?<!\w)--?(?=\w))|(?P<number>\d+(?:\.\d+)*)|(?P<word>[^\W\d_]+)|(?P<dot>\.(?=\w))"
    r"|(?P<sign>==|!=|<=|>=|->|=>|&&|\|\||[=+*/@#%&<>$~|])"
)


def say_code(text: str, lang: Language) -> list[tuple[str, int, int]]:
    """Spoken words of a code span with their ranges in it; brackets, quotes and underscores are silent."""
    said: list[tuple[str, int, int]] = []
    for match in _TOKEN.finditer(text):
        kind, raw = match.lastgroup, match[0]
        if kind == "flag":
            word = "dash dash" if raw == "--" else "dash"
        elif kind == "number":
            word = " point ".join(lang.number(p) if p[0] != "0" else lang.digits(p) for p in raw.split("."))
        elif kind == "dot":
            word = "dot"
        elif kind == "sign":
            word = _SIGNS[raw]
        else:
            for name in re.finditer(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|[A-Z]", raw):
                said.append((name[0], match.start() + name.start(), match.start() + name.end()))
            continue
        said.append((word, match.start(), match.end()))
    return said
