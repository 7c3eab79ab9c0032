"""What was said, as token ids in the engine: the agreed past, the user's open turn, answers being tried.

    base    system prompt, examples and every settled turn: only ever grows, by whole turns
    tail    a fork of base holding the user's words so far (prefilled while they speak, rewound when they change)
    reply   a fork of the tail that answers; when it is settled it becomes the new base, cut to what was heard

A fork shares the pages of its parent, so that a dropped draft costs nothing and leaves nothing. MIND lane only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assistant.conversation.heads import Heads
from assistant.conversation.keeping import Kept, save_kept
from assistant.conversation.reply import Mouth, Reply, sound_of
from assistant.conversation.thoughts import BEGIN, END, ROOM, Thoughts
from assistant.conversation.turns import Prompt
from assistant.interjection import Reason
from assistant.personas import Persona
from assistant.personas.context import Context
from assistant.timeline.events import Tokens
from engine import Engine, Sampling, Session, Token, Usage
from engine.compaction import Compacted, Compactor
from engine.text.template import ChatFragments
from voices import ClauseSplitter


@dataclass(frozen=True)
class Draft:
    """An answer to `text` that is being made, and what its prompt cost."""

    prompt: Prompt
    reply: Reply
    tokens: Tokens
    note: str = ""
    """What the model was told of the moment, for this answer only."""


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of leading ids that two sequences share."""
    limit = min(len(first), len(second))
    for index in range(limit):
        if first[index] != second[index]:
            return index
    return limit


class Dialogue:
    """The conversation's memory on one engine, for one persona."""

    def __init__(
        self,
        engine: Engine,
        persona: Persona,
        mouth: Mouth,
        clock: Callable[[], float],
        kept: Kept | None = None,
        heads: Heads | None = None,
    ) -> None:
        """`kept`: a past to go on with; nothing of it is computed again unless the persona's prompt has changed.
        `heads`: the prompts that are known already, shared with other conversations."""
        self._engine = engine
        self._clock = clock
        self._own_heads = Heads(engine) if heads is None else None
        self._heads: Heads = heads or self._own_heads  # type: ignore[assignment]
        self._take_on(persona, mouth)
        self._done_ids = done_ids(engine)
        self._tail: Session | None = None
        self._drafts: dict[int, Session] = {}
        """Sessions of answers that are neither settled nor dropped."""
        self._discarded = 0
        """Tokens forwarded for words and drafts of the open turn that are no longer part of it."""
        self._after_system = not persona.examples
        """Whether the next user turn follows the system prompt directly: some templates join the two."""
        self._head = self._head_ids()
        if kept is None:
            self.base = self._heads.fork(self._head)
            self._compactor = Compactor(engine, self.base, len(self._head))
        else:
            self._go_on_with(kept)

    def _take_on(self, persona: Persona, mouth: Mouth) -> None:
        self._persona, self._mouth = persona, mouth
        self._template = self._engine.template
        if persona.thinking:
            self._template = ChatFragments(self._engine.tokenizer, self._template.source, thinking=True)
        self._context = Context(persona.context, persona.language)
        self._note = ""
        """What is true during the open turn: taken when it begins, told before its words, forgotten with it."""

    def _go_on_with(self, kept: Kept) -> None:
        head, self._head = self._head, kept.session.ids[: kept.head]
        self.base = kept.session
        self._after_system = kept.after_system
        self._compactor = Compactor(self._engine, self.base, len(self._head))
        self._compactor.turns = list(kept.turns)
        if self._head != head:
            self.switch(self._persona, self._mouth)

    def save(self, folder: Path) -> int:
        """Write the agreed past to `folder`, for `load_kept`; returns its tokens. SavedSessionError."""
        turns = tuple(at for at in self._compactor.turns if at <= len(self.base))
        return save_kept(Kept(self.base, len(self._head), turns, self._after_system), folder)

    def _head_ids(self) -> list[int]:
        ids = self._template.system(self._persona.system)
        for number, example in enumerate(self._persona.examples):
            ids += self._template.user(example.user, after_system=number == 0)
            ids += self._template.assistant(example.assistant)
        return ids

    def switch(self, persona: Persona, mouth: Mouth) -> None:
        """Another character goes on with the same past: its own prompt, then the turns so far. No turn may be open.

        The head of a character that has spoken before is still in the engine's pages; what was said since comes after
        another head now and is computed again.
        """
        past = self.base.ids[len(self._head) :]
        self._take_on(persona, mouth)
        # The past keeps the fragments it was made of: with turns in it, a system prompt is not what comes before.
        self._after_system = not persona.examples and not past
        before = len(self._head)
        self._head = self._head_ids()
        base = self._heads.fork(self._head)
        base.append(past)
        self.forget_tail()
        self._compactor.close()
        turns = [at - before + len(self._head) for at in self._compactor.turns]
        self.base.close()
        self.base = base
        self._compactor = Compactor(self._engine, base, len(self._head))
        self._compactor.turns = turns

    def rest(self, *, at_once: bool) -> Compacted | None:
        """Nobody speaks: shorten a long past in the background, or take over what was prepared.

        `at_once` waits for the preparation: on the virtual clock computing takes no time. None if nothing was swapped.
        """
        if self._tail is not None or self._drafts:
            return None
        self._mouth.rehearse()
        done = self._compactor.between_turns()
        if at_once and done is None:
            self._compactor.wait()
            done = self._compactor.between_turns()
        return done

    def _make_room(self, words: int) -> None:
        """Shorten the past now if `words` ids and an answer do not fit behind it: nobody was ever silent for long
        enough to do it in the background. Better a turn that waits than one that fails."""
        wanted = words + self._sampling().max_tokens
        if len(self.base) + wanted <= self._engine.context or self._drafts:
            return
        self.forget_tail()
        self.rest(at_once=True)

    @property
    def context(self) -> int:
        """Tokens of the agreed past."""
        return len(self.base)

    def listen(self, text: str) -> float:
        """Prefill the user's words so far. Returns the log-odds that they are a whole turn.

        The words go in without their final punctuation: the model's own wish to put one there, or to end the turn,
        is the evidence (area under the curve 0.996 for SmolLM2-135M on 124 labelled requests).
        """
        bare = text.strip().rstrip(".!?…,;: ")
        self._take_note()
        opened = self._template.user_open(after_system=self._after_system)
        ids = opened + self._engine.tokenizer.encode(_noted(self._note, bare))
        self._make_room(len(ids))
        if self._tail is None:
            self._tail = self.base.fork()
        self._retarget(self._tail, ids)
        return end_of_turn_log_odds(self._tail.last_logits(), self._done_ids)

    def judge(self, text: str, reasons: tuple[Reason, ...]) -> dict[str, float]:
        """How much likelier each reason's words have become by what the user says, in nats a token.

        Each is scored in one batched forward as the assistant's next words, behind the user's words and behind a
        neutral beginning; the difference takes the length and the habits of a phrase out. Nothing is left behind.
        """
        self.listen(text)
        assert self._tail is not None
        close = self._template.user_close_and_assistant_open()
        suffixes = [close + self._engine.tokenizer.encode(reason.say) for reason in reasons]
        opened = self._template.user_open(after_system=self._after_system)
        neutral = opened + self._engine.tokenizer.encode(_noted(self._note, "Well, I"))
        here = self._tail.score(suffixes)
        there = self.base.score([neutral + suffix for suffix in suffixes])
        return {
            reason.name: _mean_tail(a.logprobs, size) - _mean_tail(b.logprobs, size)
            for reason, suffix, a, b in zip(reasons, suffixes, here, there, strict=True)
            for size in (len(suffix) - len(close),)
        }

    def sound_of(self, text: str) -> np.ndarray:
        """`text` in the persona's voice, float32 at `PLAYBACK_RATE`; no part of the conversation."""
        return sound_of(self._mouth, text)

    def _retarget(self, session: Session, ids: Sequence[int]) -> Usage:
        """Make `session` the base followed by `ids`, forwarding only what differs from what it holds. In the result
        `referenced` and `copied` count ids of the turn alone, not positions of the past on a page that was copied."""
        start = len(self.base)
        held = session.ids[start:]
        keep = common_prefix(held, ids)
        if keep == len(ids) == len(held):
            return Usage()
        self._discarded += len(held) - keep
        session.truncate(start + keep)
        usage = session.append(ids[keep:])
        found = len(ids) - keep - usage.forwarded
        copied = min(usage.copied, found)
        return replace(usage, referenced=found - copied, copied=copied)

    def draft(self, prompt: Prompt) -> Draft:
        """Start answering `prompt` on a fork; nothing else is changed."""
        self._take_note()
        note = self._note if prompt.text else ""
        ids = self._prompt_ids(prompt, note)
        self._make_room(len(ids))
        source = self._tail if self._tail is not None and prompt.text else self.base
        session = source.fork()
        try:
            return self._draft_on(session, prompt, note, ids)
        except BaseException:
            session.close()
            raise

    def _draft_on(self, session: Session, prompt: Prompt, note: str, ids: Sequence[int]) -> Draft:
        usage = self._retarget(session, ids)
        tokens = Tokens(
            forwarded=len(ids) - usage.referenced - usage.copied,
            referenced=len(self.base) + usage.referenced,
            copied=usage.copied,
            context=len(session),
            after_endpoint=usage.forwarded,
            discarded=self._discarded,
        )
        reply = Reply(
            session,
            self._sampling(),
            self._mouth,
            ClauseSplitter(),
            self._clock,
            self._persona.answer_sentences,
            self._say_first(session, prompt.opening),
            prompt.only_opening,
            self._thoughts() if not prompt.opening else None,
        )
        self._drafts[id(session)] = session
        return Draft(prompt, reply, tokens, note)

    def _take_note(self) -> None:
        if self._tail is None and not self._drafts:
            self._note = self._context.note()

    def _sampling(self) -> Sampling:
        sampling = self._persona.engine_sampling()
        return replace(sampling, max_tokens=sampling.max_tokens + ROOM) if self._persona.thinking else sampling

    def _thoughts(self) -> Thoughts | None:
        if not self._persona.thinking:
            return None
        opened = self._template.text.thinking
        return Thoughts(begun=BEGIN in opened and END not in opened)

    def _prompt_ids(self, prompt: Prompt, note: str) -> list[int]:
        if prompt.text:
            return self._template.user(_noted(note, prompt.text), after_system=self._after_system)
        # The assistant speaks first: its turn opens behind what ended the turn before. A template that cannot do that
        # (it closes a user's turn differently) gets a greeting to answer.
        opened, closed = self._template.user_close_and_assistant_open(), self._template.assistant_close()
        if not self._after_system and opened[: len(closed)] == closed:
            return opened[len(closed) :]
        return self._template.user("Hello.", after_system=self._after_system)

    def _say_first(self, session: Session, text: str) -> list[Token]:
        """Append `text` as the answer's beginning; the tokens it became."""
        ids = self._engine.tokenizer.encode(text) if text else []
        if not ids:
            return []
        before = len(session)
        session.append(ids)
        detokenizer = self._engine.tokenizer.detokenizer()
        return [Token(id_, detokenizer.push(id_), before + n, 0.0) for n, id_ in enumerate(ids, 1)]

    def drop(self, draft: Draft) -> None:
        """Forget a draft without a trace."""
        draft.reply.cancel()
        draft.reply.end_decoding()
        self._discarded += draft.tokens.after_endpoint
        self._drafts.pop(id(draft.reply.session), None)
        draft.reply.session.close()

    def settle(self, draft: Draft, heard: int) -> Tokens:
        """Make the answer part of the past, cut to its first `heard` characters. Returns the turn's final counts."""
        reply = draft.reply
        reply.cancel()
        reply.end_decoding()
        generated = reply.generated
        begin = reply.prompt_length + reply.hidden
        end = begin + reply.tokens_of(heard)
        rewritten = 0
        if draft.note or reply.hidden:
            rewritten = self._rewrite(draft, reply.session.ids[begin:end])
        else:
            reply.session.truncate(end)
            reply.session.append(self._template.assistant_close())
        self._drafts.pop(id(reply.session), None)
        self.forget_tail()
        self._compactor.turn_started()
        self.base.close()
        self.base = self._compactor.session = reply.session
        self._after_system = False
        tokens = replace(draft.tokens, discarded=self._discarded) if rewritten else draft.tokens
        self._discarded = 0
        return replace(tokens, context=len(self.base), generated=generated, rewritten=rewritten)

    def _rewrite(self, draft: Draft, answer: Sequence[int]) -> int:
        """Leave what was true for this turn only, and thoughts, out of the past: words and answer are computed again
        without them, while nobody waits. Returns how many tokens that took."""
        session, start = draft.reply.session, len(self.base)
        ids = self._prompt_ids(draft.prompt, "")
        if opened := self._template.text.thinking if draft.reply.hidden else "":
            ids = ids[: len(ids) - len(self._engine.tokenizer.encode(opened, special=True))]
        ids = [*ids, *answer, *self._template.assistant_close()]
        held = session.ids[start:]
        keep = common_prefix(held, ids)
        self._discarded += len(held) - keep
        session.truncate(start + keep)
        return session.append(ids[keep:]).forwarded

    def forget_tail(self) -> None:
        """The user's open turn is over or was nothing."""
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def close(self) -> None:
        """Give all pages back."""
        self._compactor.close()
        self.forget_tail()
        for session in self._drafts.values():
            session.close()
        self._drafts.clear()
        self.base.close()
        if self._own_heads is not None:
            self._own_heads.close()


def _noted(note: str, words: str) -> str:
    return f"{note} {words}" if note else words


def _mean_tail(logprobs: Sequence[float] | np.ndarray, size: int) -> float:
    return float(np.mean(np.asarray(logprobs)[-size:]))


def done_ids(engine: Engine) -> np.ndarray:
    """Tokens that a speaker who has finished is followed by: the end of the turn, or a final punctuation mark."""
    marks = [ids[0] for mark in ".?!" if len(ids := engine.tokenizer.encode(mark)) == 1]
    return np.array(sorted({*engine.template.end_of_turn_ids, *marks}), dtype=np.int64)


def end_of_turn_log_odds(logits: np.ndarray, done: np.ndarray) -> float:
    """log(p / (1 - p)) of the next token being one of `done`."""
    shifted = logits.astype(np.float64) - float(logits.max())
    weights = np.exp(shifted)
    p = float(weights[done].sum() / weights.sum())
    p = min(max(p, 1e-9), 1 - 1e-9)
    return math.log(p / (1 - p))
