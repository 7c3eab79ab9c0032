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

import numpy as np

from assistant.audio.constants import PLAYBACK_RATE
from assistant.audio.resample import resample
from assistant.conversation.reply import Mouth, Reply
from assistant.conversation.turns import Prompt
from assistant.interjection import Reason
from assistant.persona import Persona
from assistant.timeline.events import Tokens
from engine import Engine, Session, Token
from engine.compaction import Compacted, Compactor
from voices import Clause, ClauseSplitter


@dataclass(frozen=True)
class Draft:
    """An answer to `text` that is being made, and what its prompt cost."""

    text: str
    reply: Reply
    tokens: Tokens


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
        self, engine: Engine, persona: Persona, mouth: Mouth, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._persona = persona
        self._mouth = mouth
        self._clock = clock
        self._template = engine.template
        self._done_ids = done_ids(engine)
        self.base = engine.new_session()
        self._tail: Session | None = None
        self._drafts: dict[int, Session] = {}
        """Sessions of answers that are neither settled nor dropped."""
        self._discarded = 0
        """Tokens forwarded for words and drafts of the open turn that are no longer part of it."""
        self._after_system = not persona.examples
        """Whether the next user turn follows the system prompt directly: some templates join the two."""
        self._head = self._head_ids()
        self.base.append(self._head)
        self._compactor = Compactor(engine, self.base, len(self._head))

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
        self._persona, self._mouth = persona, mouth
        # The past keeps the fragments it was made of: with turns in it, a system prompt is not what comes before.
        self._after_system = not persona.examples and not past
        before = len(self._head)
        self._head = self._head_ids()
        base = self._engine.new_session()
        base.append(self._head + list(past))
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
        done = self._compactor.between_turns()
        if at_once and done is None:
            self._compactor.wait()
            done = self._compactor.between_turns()
        return done

    @property
    def context(self) -> int:
        """Tokens of the agreed past."""
        return len(self.base)

    def listen(self, text: str) -> float:
        """Prefill the user's words so far. Returns the log-odds that they are a whole turn.

        The words go in without their final punctuation: the model's own wish to put one there, or to end the turn,
        is the evidence (DESIGN, Measured: AUC 0.996 for SmolLM2-135M).
        """
        bare = text.strip().rstrip(".!?…,;: ")
        ids = self._template.user_open(after_system=self._after_system) + self._engine.tokenizer.encode(bare)
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
        neutral = self._template.user_open(after_system=self._after_system) + self._engine.tokenizer.encode("Well, I")
        here = self._tail.score(suffixes)
        there = self.base.score([neutral + suffix for suffix in suffixes])
        return {
            reason.name: _mean_tail(a.logprobs, size) - _mean_tail(b.logprobs, size)
            for reason, suffix, a, b in zip(reasons, suffixes, here, there, strict=True)
            for size in (len(suffix) - len(close),)
        }

    def sound_of(self, text: str) -> np.ndarray:
        """`text` in the persona's voice, float32 at `PLAYBACK_RATE`; no part of the conversation."""
        pieces = [piece.pcm for piece in self._mouth.stream(Clause(text, 0), quickly=False)]
        sound = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
        return resample(sound, self._mouth.sample_rate, PLAYBACK_RATE)

    def _retarget(self, session: Session, ids: Sequence[int]) -> tuple[int, int, int]:
        """Make `session` the base followed by `ids`, forwarding only what differs from what it holds."""
        start = len(self.base)
        held = session.ids[start:]
        keep = common_prefix(held, ids)
        if keep == len(ids) == len(held):
            return 0, 0, 0
        self._discarded += len(held) - keep
        session.truncate(start + keep)
        stats = session.append(ids[keep:])
        return stats.forwarded, stats.referenced, stats.copied

    def draft(self, prompt: Prompt) -> Draft:
        """Start answering `prompt` on a fork; nothing else is changed."""
        ids = self._prompt_ids(prompt)
        source = self._tail if self._tail is not None and prompt.text else self.base
        session = source.fork()
        forwarded, referenced, copied = self._retarget(session, ids)
        tokens = Tokens(
            forwarded=len(ids) - referenced - copied,
            referenced=len(self.base) + referenced,
            copied=copied,
            context=len(session),
            after_endpoint=forwarded,
            discarded=self._discarded,
        )
        self._drafts[id(session)] = session
        reply = Reply(
            session,
            self._persona.engine_sampling(),
            self._mouth,
            ClauseSplitter(),
            self._clock,
            self._persona.answer_sentences,
            self._say_first(session, prompt.opening),
            prompt.only_opening,
        )
        return Draft(prompt.text, reply, tokens)

    def _prompt_ids(self, prompt: Prompt) -> list[int]:
        if prompt.text:
            return self._template.user(prompt.text, after_system=self._after_system)
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
        kept = reply.tokens_of(heard)
        reply.session.truncate(reply.prompt_length + kept)
        reply.session.append(self._template.assistant_close())
        self._drafts.pop(id(reply.session), None)
        self.forget_tail()
        self._compactor.turn_started()
        self.base.close()
        self.base = self._compactor.session = reply.session
        self._after_system = False
        self._discarded = 0
        return replace(draft.tokens, context=len(self.base), generated=generated)

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
