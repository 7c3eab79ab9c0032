"""Markdown to plain text that remembers where each letter stood.

`markdown-it-py` does the parsing. It reports lines but not columns, so its inline parser is used with a state
that notes the position at which each token was made.

A clause may be cut out of the middle of a list, a bold stretch or a table; so markup that has lost its partner
is dropped, never spoken, and table rows are taken line by line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from voices.mapped import Kind, MappedText

_BREAK = "\n"  # the end of a heading, item, row or paragraph: a pause


class _LocatedState(StateInline):
    """Notes in `token.meta["at"]` where in the inline source a token began."""

    _pending_at = 0

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._pending_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta["at"] = self._pending_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


class _LocatedInline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = _LocatedState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    md = MarkdownIt()
    md.inline = _LocatedInline()
    md.configure("commonmark").enable("strikethrough")
    # An indented line in a reply is a nested item, not code; "text\n---" is a rule, not a heading; a block of HTML
    # is read for its words. Joining tokens would lose their positions.
    md.disable(["code", "lheading", "html_block", "reference", "fragments_join", "text_join"])
    return md


def plain(source: str) -> MappedText:
    """The words of a Markdown text, without its marks."""
    out = MappedText()
    parsed = source.replace("\r\n", " \n").replace("\r", "\n")
    parsed = re.sub(r"(?m)^(\s*[-*+]\s+)\[[ xX]\](?=\s)", r"\1   ", parsed)  # the box of a task
    parsed = re.sub(r"(?<=\d)\*(?=\d)", "×", parsed)  # "2*3*4" is arithmetic, not emphasis
    line_starts = [0]
    for line in re.split(r"(?<=\n)", parsed):
        line_starts.append(line_starts[-1] + len(line))
    lines = [source[a:b] for a, b in zip(line_starts, line_starts[1:], strict=False)]
    for token in _parser().parse(parsed):
        if token.type == "inline":
            _inline(token, lines, line_starts, source, out)
        elif token.type == "list_item_open" and token.info and token.map:
            found = re.search(r"\d+[.)]", lines[token.map[0]])
            if found:
                at = line_starts[token.map[0]] + found.start()
                out.add(found.group()[:-1], at)
                out.put(", ", at + len(found.group()) - 1, at + len(found.group()))
        elif token.type == "fence" and token.map:
            _fence(token, line_starts, source, out)
        elif token.type in ("paragraph_close", "heading_close", "list_item_close") and out.text:
            if not out.text.endswith(_BREAK):
                out.put(_BREAK, out.ends[-1], out.ends[-1])
    return out


def _fence(token: Token, line_starts: list[int], source: str, out: MappedText) -> None:
    """A block of code is named, not read."""
    assert token.map
    language = re.match(r"[A-Za-z+#]{2,}", token.info.strip())
    name = {
        "py": "Python",
        "js": "JavaScript",
        "ts": "TypeScript",
        "sh": "shell",
        "bash": "shell",
        "text": "",
    }
    word = name.get(language[0].lower(), language[0].capitalize()) if language else ""
    start = line_starts[token.map[0]]
    end = line_starts[min(token.map[1], len(line_starts) - 1)]
    end = start + len(source[start:end].rstrip())
    if token.content.strip():
        out.put(f"{word} code block".strip(), start, end, Kind.FIXED)
        out.put(_BREAK, end, end)


def _inline(token: Token, lines: list[str], line_starts: list[int], source: str, out: MappedText) -> None:
    assert token.map is not None
    columns = _columns(token.content, token.map, lines, line_starts)
    children = token.children or []
    index = 0
    last = -1
    while index < len(children):
        child = children[index]
        at = child.meta.get("at", 0)
        if child.type == "text":
            if at == last and len(child.content) == 1:
                at += 1  # the letters of a run of marks are all noted at the run's beginning
            last = at
            _text(child.content, at, token.content, columns, out)
        elif child.type == "text_special":
            width = len(child.markup)
            out.put(child.content, columns[at], columns[at + width - 1] + 1)
        elif child.type == "code_inline":
            inside = token.content.find(child.content, at + len(child.markup))
            for offset, char in enumerate(child.content):
                place = columns[min(inside + offset, len(columns) - 1)] if inside >= 0 else columns[at]
                out.put(char, place, place + 1, Kind.CODE)
        elif child.type in ("softbreak", "hardbreak"):
            place = columns[min(at, len(columns) - 1)]
            out.put(" " if child.type == "softbreak" else _BREAK, place, place + 1)
        elif child.type == "image":
            out.put(child.content, columns[at], columns[min(at + 1, len(columns) - 1)])
        elif child.type == "link_open":
            index = _link(children, index, columns, out)
        elif child.type == "html_inline" and child.content.lower().startswith(("<br", "<p", "</p", "<li")):
            out.put(_BREAK, columns[at], columns[at] + 1)
        index += 1


def _text(text: str, at: int, content: str, columns: list[int], out: MappedText) -> None:
    for offset, char in enumerate(text):
        place = columns[min(at + offset, len(columns) - 1)]
        out.put(char, place, place + 1)


def _link(children: list[Token], index: int, columns: list[int], out: MappedText) -> int:
    """A link without words of its own (or an autolink) is spoken as its address; others need nothing here."""
    opening = children[index]
    following = children[index + 1] if index + 1 < len(children) else None
    if following and following.type == "link_close":
        at = opening.meta.get("at", 0)
        out.put(str(opening.attrGet("href") or ""), columns[at], columns[min(at + 1, len(columns) - 1)])
    return index


def _columns(content: str, span: list[int], lines: list[str], line_starts: list[int]) -> list[int]:
    """The source offset of each letter of an inline token's content (block marks are not part of it)."""
    columns: list[int] = []
    for number, part in enumerate(content.split("\n")):
        line = span[0] + number
        text = lines[line] if line < len(lines) else ""
        begin = text.find(part.rstrip()) if number or not part else text.rfind(part)
        base = (line_starts[line] if line < len(lines) else 0) + max(begin, 0)
        columns += range(base, base + len(part) + 1)  # the last one is the line end
    return columns or [0]
