"""What was said, as messages: the same interface as `assistant.conversation.dialogue.Dialogue`, for a server.

The messages are sent in an order that only grows: system, examples, settled turns, then this turn's note and words.
So the server's own prefix cache finds everything but the last message, and after an interruption everything up to the
cut. What hangs on a live cache (judging unfinished words, exact rollback, pages kept on disk) is left out, said once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from assistant.conversation.dialogue import Draft
from assistant.conversation.reply import Mouth, Reply, sound_of
from assistant.conversation.thoughts import ROOM, Thoughts
from assistant.conversation.turns import Prompt
from assistant.interjection import Reason
from assistant.llm_openai.model import Message, RemoteModel
from assistant.llm_openai.session import RemoteSession
from assistant.personas import Persona
from assistant.personas.context import Context
from assistant.timeline.events import Tokens
from engine import SavedSessionError, Token
from engine.compaction import Compacted
from voices import ClauseSplitter

FILE = "conversation-elsewhere.json"
LETTERS = 3.5
"""Letters a token, where nothing better is known."""
KEEP = 0.5
"""Share of the context that stays when the oldest turns are left out: seldom, as it costs the server its prefix."""


@dataclass(frozen=True)
class RemoteKept:
    """A past that was saved."""

    past: tuple[Message, ...]


def load_remote(folder: Path) -> RemoteKept | None:
    """What `RemoteDialogue.save` wrote; None if there is nothing. SavedSessionError."""
    try:
        past = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return RemoteKept(tuple({"role": str(m["role"]), "content": str(m["content"])} for m in past))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SavedSessionError(f"the saved conversation in {folder} cannot be read: {error}.") from error


class RemoteDialogue:
    """The conversation's memory in front of a server. MIND lane only."""

    def __init__(
        self,
        model: RemoteModel,
        persona: Persona,
        mouth: Mouth,
        clock: Callable[[], float],
        kept: RemoteKept | None = None,
    ) -> None:
        self._model = model
        self._clock = clock
        self._past: list[Message] = list(kept.past) if kept is not None else []
        self._drafts: set[int] = set()
        self._tokens = 0
        """Of the last prompt, as the server counted them."""
        self._persona, self._mouth = persona, mouth
        self._context = Context(persona.context, persona.language)
        self._note = ""
        model.lacks("probes")

    def switch(self, persona: Persona, mouth: Mouth) -> None:
        """See `Dialogue.switch`."""
        self._persona, self._mouth = persona, mouth
        self._context = Context(persona.context, persona.language)

    def _head(self) -> list[Message]:
        head = [{"role": "system", "content": self._persona.system}]
        for example in self._persona.examples:
            head += [{"role": "user", "content": example.user}, {"role": "assistant", "content": example.assistant}]
        return head

    @property
    def context(self) -> int:
        """Tokens of the agreed past: the server's count, or a guess."""
        return self._tokens or round(sum(len(m["content"]) + 8 for m in self._head() + self._past) / LETTERS)

    def listen(self, text: str) -> None:
        """No opinion on unfinished words."""

    def judge(self, text: str, reasons: tuple[Reason, ...]) -> dict[str, float]:
        """No scores."""
        self._model.lacks("judge")
        return {}

    def sound_of(self, text: str) -> np.ndarray:
        """See `Dialogue.sound_of`."""
        return sound_of(self._mouth, text)

    def draft(self, prompt: Prompt) -> Draft:
        """Start answering `prompt`; nothing else is changed."""
        if not self._drafts:
            self._note = self._context.note()
        note = self._note if prompt.text else ""
        words = f"{note} {prompt.text}" if note else prompt.text
        asked = [{"role": "user", "content": words or "Hello."}]
        opening = [Token(-1, prompt.opening, 1, 0.0)] if prompt.opening else []
        if opening and not prompt.only_opening:
            self._model.lacks("opening")
        session = RemoteSession(self._model, self._head() + self._past + asked, opened=len(opening))
        self._drafts.add(id(session))
        sampling = self._persona.engine_sampling()
        thinking = self._persona.thinking
        reply = Reply(
            cast(Any, session),
            replace(sampling, max_tokens=sampling.max_tokens + ROOM) if thinking else sampling,
            self._mouth,
            ClauseSplitter(),
            self._clock,
            self._persona.answer_sentences,
            opening,
            bool(opening),
            Thoughts(begun=False) if thinking and not opening else None,
        )
        return Draft(prompt, reply, Tokens(context=self.context), note)

    def drop(self, draft: Draft) -> None:
        """Forget a draft without a trace."""
        self._end(draft)

    def settle(self, draft: Draft, heard: int) -> Tokens:
        """Make the answer part of the past, cut to its first `heard` characters."""
        session = self._end(draft)
        text = draft.reply.text[:heard].strip()
        self._add(draft.prompt.text, text)
        generated = draft.reply.generated
        self._model.generated += generated
        counts = session.generation.counts if session.generation is not None else None
        if counts is None or not counts.prompt:
            return replace(draft.tokens, context=self.context, generated=generated)
        self._tokens = counts.prompt + counts.generated
        return Tokens(
            forwarded=counts.prompt - counts.cached,
            referenced=counts.cached,
            context=self._tokens,
            generated=counts.generated,
        )

    def _add(self, user: str, assistant: str) -> None:
        """Templates want the two sides in turn: what the assistant says unasked joins what it said before."""
        if not user and self._past:
            last = self._past[-1]
            self._past[-1] = {**last, "content": f"{last['content']} {assistant}"}
            return
        self._past += [{"role": "user", "content": user or "Hello."}, {"role": "assistant", "content": assistant}]

    def _end(self, draft: Draft) -> RemoteSession:
        draft.reply.cancel()
        draft.reply.end_decoding()
        session = cast(RemoteSession, draft.reply.session)
        session.close()
        self._drafts.discard(id(session))
        return session

    def forget_tail(self) -> None:
        """Nothing of an open turn is held."""

    def rest(self, *, at_once: bool) -> Compacted | None:
        """Leave the oldest turns out of a long past."""
        if self._drafts:
            return None
        self._mouth.rehearse()
        before, limit = self.context, self._model.choice.context - self._persona.answer_tokens
        if before < 0.8 * limit or len(self._past) < 4:
            return None
        self._tokens = 0
        while self.context > KEEP * limit and len(self._past) >= 4:
            first_user = next((n for n, m in enumerate(self._past[1:], 1) if m["role"] == "user"), len(self._past) - 2)
            del self._past[:first_user]
        return Compacted(before, self.context, before - self.context, 0)

    def save(self, folder: Path) -> int:
        """Write the past to `folder`; returns its tokens (a guess). SavedSessionError."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = folder / f"{FILE}.new"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(self._past, out, ensure_ascii=False)
                out.flush()
                os.fsync(out.fileno())
            os.replace(fresh, folder / FILE)
        except OSError as error:
            raise SavedSessionError(f"the conversation cannot be written to {folder}: {error.strerror}.") from error
        return self.context

    def close(self) -> None:
        """Nothing is held."""
