"""Tells a model's thoughts from its answer: what stands between `<think>` and `</think>` is not for the ear."""

from __future__ import annotations

BEGIN, END = "<think>", "</think>"
ROOM = 1024
"""Tokens a model may think for, beside those of the answer."""


class Thoughts:
    """Fed with an answer token by token."""

    def __init__(self, *, begun: bool) -> None:
        """`begun`: the prompt has opened the thought already."""
        self._inside = begun
        self._text = ""
        self._over = False

    def push(self, text: str) -> str:
        """The part of `text` that is to be said. A token is thought, or said, as a whole wherever a model keeps the
        marks as tokens of their own."""
        if self._over:
            return text
        self._text += text
        if self._inside:
            before, end, rest = self._text.partition(END)
            if not end:
                return ""
            self._inside, self._text = False, rest
        so_far = self._text.lstrip()
        if so_far.startswith(BEGIN):
            self._inside, self._text = True, so_far[len(BEGIN) :]
            return self.push("")
        if not so_far or BEGIN.startswith(so_far):  # white space, or it may become one yet
            return ""
        self._over = True
        return so_far

    def finish(self) -> str:
        """What was held back and is no thought."""
        held, self._over = ("" if self._over or self._inside else self._text.lstrip()), True
        return held
