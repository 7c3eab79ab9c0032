"""The answer that is being drafted or given: begun, made piece by piece ahead of what is heard, dropped or kept.

At most one at a time. Jobs run on the MIND lane; results of an answer that was dropped meanwhile clean up after
themselves and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assistant.audio.constants import PLAYBACK_RATE
from assistant.conversation.dialogue import Dialogue, Draft
from assistant.conversation.reply import ReplyStep
from assistant.conversation.turns import Answer, Prompt
from assistant.conversation.workers import Lane, Workers
from assistant.timeline.events import EventType

Emit = Callable[..., None]


class Answering:
    """Makes answers. Conversation thread only."""

    def __init__(
        self, dialogue: Dialogue, workers: Workers, emit: Emit, on_pieces: Callable[[Answer, int], None]
    ) -> None:
        """`on_pieces(answer, had)`: the answer has more pieces of sound than the `had` it had, or has ended."""
        self._dialogue = dialogue
        self._workers = workers
        self._emit = emit
        self._on_pieces = on_pieces
        self.current: Answer | None = None

    def begin(self, prompt: Prompt) -> Answer:
        """The answer to `prompt`: the draft that is being made of the same words, or a new one."""
        if self.current is not None:
            if self.current.prompt.same(prompt):
                return self.current
            self.drop()
        answer = Answer(prompt)
        self.current = answer
        self._emit(EventType.DRAFT, text=prompt.text)

        def make() -> tuple[Draft, ReplyStep] | None:
            if answer.dropped:
                return None
            draft = self._dialogue.draft(prompt)
            try:
                return draft, draft.reply.step()
            except BaseException:
                self._dialogue.drop(draft)  # nobody else knows of it
                raise

        def made(result: tuple[Draft, ReplyStep] | None) -> None:
            if result is None:
                return
            answer.draft, step = result
            if answer.dropped:
                self.let_go(answer.draft)
                return
            self._take(answer, step)

        self._workers.submit(Lane.MIND, make, made)
        return answer

    def _take(self, answer: Answer, step: ReplyStep) -> None:
        if answer.dropped:
            return
        had = len(answer.pieces)
        answer.take(step)
        self._on_pieces(answer, had)

    def pump(self, ahead: int, wanted: float) -> None:
        """Make the next piece if the `ahead` samples that are ready are less than `wanted` seconds."""
        answer = self.current
        if answer is None or answer.draft is None or answer.in_flight or answer.finished:
            return
        if ahead > wanted * PLAYBACK_RATE:
            return
        answer.in_flight = True
        self._workers.submit(Lane.MIND, answer.draft.reply.step, lambda step: self._take(answer, step))

    def drop(self) -> None:
        """Forget the current answer without a trace."""
        answer, self.current = self.current, None
        if answer is None:
            return
        answer.dropped = True
        if answer.draft is not None:
            self._emit(EventType.DRAFT_DROPPED, text=answer.prompt.text)
            self.let_go(answer.draft)

    def drop_unless(self, prompt: Prompt) -> None:
        """Forget the current answer if it answers something else."""
        if self.current is not None and not self.current.prompt.same(prompt):
            self.drop()

    def let_go(self, draft: Draft) -> None:
        """Give a draft's session back."""
        draft.reply.cancel()
        self._workers.submit(Lane.MIND, lambda: self._dialogue.drop(draft), lambda _: None)

    def settle(self, answer: Answer, heard: int, receive: Callable[[Any], None]) -> None:
        """The answer is over; its first `heard` characters become part of the past. `receive` gets the counts."""
        self.current = None
        answer.dropped = True
        draft = answer.draft
        if draft is None:
            return
        if not answer.text[:heard].strip():  # the model said nothing: the exchange never happened
            self.let_go(draft)
            return
        draft.reply.cancel()
        self._workers.submit(Lane.MIND, lambda: self._dialogue.settle(draft, heard), receive)
