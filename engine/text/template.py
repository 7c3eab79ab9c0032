"""A chat template, rendered a few times at load and cut into the fragments that sessions append.

A conversation is never rendered again: its ids are the truth, and each turn adds fragments to them.  For ChatML::

    system("S")                      <|im_start|>system\nS<|im_end|>\n
    user_open()                      <|im_start|>user\n
    ... the user's words ...
    user_close_and_assistant_open()  <|im_end|>\n<|im_start|>assistant\n
    ... the model's tokens ...
    assistant_close()                <|im_end|>\n

Templates without a system role (Gemma, Mistral) fold the system text into the first user turn; then `system` ends
inside that turn and `user_open(after_system=True)` is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.errors import TemplateError
from engine.text.tokenizer import Tokenizer

_S, _U, _A, _V, _B = (f"\u00ab{name}\u00bb" for name in ("SYSTEM", "USER1", "ANSWER1", "USER2", "ANSWER2"))


@dataclass(frozen=True)
class Fragments:
    """The text around the contents.  `thinking` is what a generation prompt adds that history does not keep."""

    before_system: str
    after_system: str
    first_user_open: str
    system_user_open: str
    user_open: str
    user_close: str
    assistant_close: str
    thinking: str = ""


class ChatFragments:
    """Template fragments as ids.  Contents are encoded as plain text, so nobody can speak a control token."""

    def __init__(self, tokenizer: Tokenizer, template: str | None, *, thinking: bool = False) -> None:
        self.tokenizer = tokenizer
        self.source = template or _CHATML
        self.text = _derive(self.source, tokenizer, thinking)
        self.end_of_turn_ids = tokenizer.stop_ids
        self._cache: dict[str, list[int]] = {}

    def _fixed(self, text: str) -> list[int]:
        if text not in self._cache:
            self._cache[text] = self.tokenizer.encode(text, special=True)
        return list(self._cache[text])

    def system(self, text: str) -> list[int]:
        """The beginning of a conversation with a system prompt."""
        return self._fixed(self.text.before_system) + self.tokenizer.encode(text) + self._fixed(self.text.after_system)

    def user_open(self, *, after_system: bool = False, first: bool = False) -> list[int]:
        """Opens a user turn; `after_system` directly behind `system()`, `first` in a conversation without one."""
        if after_system:
            return self._fixed(self.text.system_user_open)
        return self._fixed(self.text.first_user_open if first else self.text.user_open)

    def user_close_and_assistant_open(self) -> list[int]:
        """From the end of the user's words to the model's first token."""
        return self._fixed(self.text.user_close + self.text.thinking)

    def assistant_close(self) -> list[int]:
        """Ends the model's turn.  Generation stops before its end-of-turn token, so this always brings it."""
        return self._fixed(self.text.assistant_close)

    def user(self, text: str, *, after_system: bool = False, first: bool = False) -> list[int]:
        """A whole user turn up to where the model begins."""
        opened = self.user_open(after_system=after_system, first=first)
        return opened + self.tokenizer.encode(text) + self.user_close_and_assistant_open()

    def assistant(self, text: str) -> list[int]:
        """A whole assistant turn (examples in a persona)."""
        return self.tokenizer.encode(text) + self.assistant_close()

    def render(self, messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
        """The template's own full render: for tests and comparisons, never for a running conversation."""
        return _Renderer(self.source, self.tokenizer).render(messages, add_generation_prompt)


class _Renderer:
    """The Jinja environment chat templates expect, sandboxed: a model file is not trusted to run code."""

    def __init__(self, source: str, tokenizer: Tokenizer, thinking: bool = False) -> None:
        from jinja2 import TemplateSyntaxError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        # A date at the head of the prompt would break the prefix every day; templates get a fixed one.
        environment.globals["strftime_now"] = lambda _format: "26 Jul 2024"
        vocabulary = tokenizer.vocabulary
        self.variables: dict[str, Any] = {"enable_thinking": thinking, "date_string": "26 Jul 2024", "tools": None}
        for name, token in (("bos_token", vocabulary.bos), ("eos_token", vocabulary.eos)):
            self.variables[name] = "" if token is None else tokenizer.decode([token], special=True)
        try:
            self.template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise TemplateError(f"The model's chat template is not valid Jinja: {error}.") from error

    def render(self, messages: list[dict[str, str]], prompt: bool) -> str:
        from jinja2 import TemplateError as JinjaError

        try:
            return self.template.render(messages=messages, add_generation_prompt=prompt, **self.variables)
        except (JinjaError, TypeError, KeyError) as error:
            raise TemplateError(f"The model's chat template refuses a plain conversation: {error}.") from error


def _refuse(message: str) -> str:
    raise TemplateError(message)


def _derive(source: str, tokenizer: Tokenizer, thinking: bool) -> Fragments:
    renderer = _Renderer(source, tokenizer, thinking)
    system, user, answer = (
        {"role": "system", "content": _S},
        {"role": "user", "content": _U},
        {"role": "assistant", "content": _A},
    )
    user2, answer2 = {"role": "user", "content": _V}, {"role": "assistant", "content": _B}

    # bos + header + S, then up to the user's words, then what a generation prompt puts behind them.
    prompt_with = renderer.render([user, answer, user2], True)
    head, rest = _cut(prompt_with, _U)
    user_close, rest = _cut(rest, _A)
    between, generation = _cut(rest, _V)
    thinking_part = generation[len(user_close) :] if generation.startswith(user_close) else ""
    if not generation.startswith(user_close):
        # Some templates close a user turn differently when the model is to speak; the live form is the one to append.
        user_close = generation

    closed = renderer.render([user, answer, user2, answer2], False)
    assistant_close = _cut(closed, _B)[1]
    shared = _common_prefix(between, assistant_close)
    user_open = between[len(shared) :]
    if not shared:
        raise TemplateError("The model's chat template does not separate one turn from the next.")

    try:
        with_system = renderer.render([system, user], True)
        before_system, rest = _cut(with_system, _S)
        after_system = _cut(rest, _U)[0]
    except TemplateError:
        # No system role at all: give the text as the opening of the first user turn, the way Gemma's template does.
        before_system, after_system = head, "\n\n"
    system_user_open = ""
    if user_open and after_system.endswith(user_open):
        after_system, system_user_open = after_system[: -len(user_open)], user_open
    return Fragments(
        before_system=before_system,
        after_system=after_system,
        first_user_open=head,
        system_user_open=system_user_open,
        user_open=user_open,
        user_close=user_close,
        assistant_close=shared,
        thinking=thinking_part,
    )


def _cut(text: str, marker: str) -> tuple[str, str]:
    before, found, after = text.partition(marker)
    if not found:
        raise TemplateError("The model's chat template drops or changes the text it is given.")
    return before, after


def _common_prefix(a: str, b: str) -> str:
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return a[:n]


_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
