"""Try a persona without a microphone: texts in, answers out, its reasons to cut in among them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import SAMPLE_RATE
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.reply import Mouth
from assistant.conversation.turns import Prompt
from assistant.interjection import Past, Reason, choose
from assistant.personas.model import Persona
from engine import Engine


@dataclass(frozen=True)
class Attempt:
    """One exchange. `cut_in`: the reason for which it would have cut in on these words, spoken at the usual pace."""

    said: str
    answer: str
    cut_in: str
    seconds: float
    sound: NDArray[np.float32]
    """At `PLAYBACK_RATE`; empty with a silent mouth."""


def attempts(engine: Engine, persona: Persona, mouth: Mouth, texts: list[str]) -> Iterator[Attempt]:
    """The answers to `texts`, one after the other, as one conversation."""
    dialogue = Dialogue(engine, persona, mouth, time.monotonic)
    past, t = Past(), 0
    try:
        if persona.greeting:
            yield _one(dialogue, Prompt("", persona.greeting, only_opening=True), "")
        for text in texts:
            spoken = round(len(text.split()) / 2.5 * SAMPLE_RATE)
            t += spoken + 3600 * SAMPLE_RATE  # each text tries the reasons anew, whatever the cooldown
            reason = _reason(dialogue, persona, text, spoken, past, t)
            opening = ("", False) if reason is None else (reason.say, reason.only_say)
            yield _one(dialogue, Prompt(text, *opening), "" if reason is None else reason.name)
    finally:
        dialogue.close()


def _reason(dialogue: Dialogue, persona: Persona, text: str, spoken: int, past: Past, t: int) -> Reason | None:
    rules = persona.interjections.rules()
    judged = tuple(reason for reason in rules.reasons if reason.judged)
    scores = dialogue.judge(text, judged) if judged else {}
    return choose(text, spoken, scores, past, t, rules)


def _one(dialogue: Dialogue, prompt: Prompt, cut_in: str) -> Attempt:
    begin = time.monotonic()
    draft = dialogue.draft(prompt)
    pieces = []
    while True:
        step = draft.reply.step()
        if step.piece is not None:
            pieces.append(step.piece.sound)
        if step.finished:
            break
    seconds = time.monotonic() - begin
    if step.text.strip():
        dialogue.settle(draft, len(step.text))
    else:
        dialogue.drop(draft)
    sound = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    return Attempt(prompt.text, step.text.strip(), cut_in, seconds, sound)
