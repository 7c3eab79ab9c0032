"""Speaking out of turn, for the conversation: asks the engine, keeps the past, says when and what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assistant.conversation.dialogue import Dialogue
from assistant.conversation.workers import Lane, Workers
from assistant.interjection import Eagerness, InterjectionRules, Past, Reason, allowed, choose

Scorer = Callable[[str, tuple[Reason, ...]], Mapping[str, float]]
"""From the user's words and the judged reasons to a score each; the engine's own by default."""


class Interjector:
    """Decides at stable words and at ticks. Conversation thread only; scores come from the MIND lane."""

    def __init__(self, dialogue: Dialogue, workers: Workers, rules: InterjectionRules, scorer: Scorer | None) -> None:
        self._workers = workers
        self._score: Scorer = scorer or dialogue.judge
        self.rules = rules
        self._past = Past()
        self._scores: Mapping[str, float] = {}
        self._asked = ""
        self._noise_at = 0
        """Samples of the user's speech at the last listening noise."""
        self._noises = 0

    def words(self, text: str, t: int) -> None:
        """The user's stable words have changed: have the judged reasons scored."""
        judged = tuple(reason for reason in self.rules.reasons if reason.judged)
        if not judged or text == self._asked or not allowed(self._past, t, self.rules):
            return
        self._asked = text

        def scored(scores: Mapping[str, float]) -> None:
            if text == self._asked:
                self._scores = scores

        self._workers.submit(Lane.MIND, lambda: self._score(text, judged) if text == self._asked else {}, scored)

    def due(self, text: str, spoken: int, t: int) -> Reason | None:
        """The reason to cut in at `t`, if there is one; it is then spent."""
        if self.rules.eagerness is Eagerness.OFF or not text:
            return None
        reason = choose(text, spoken, self._scores, self._past, t, self.rules)
        if reason is not None:
            self._past = self._past.after(reason, t)
        return reason

    def noise_due(self, spoken: int, silence: int, finished: float | None) -> str | None:
        """The listening noise to make now, if any: in a short pause of a long turn that is not over."""
        rules = self.rules
        if not rules.listening_noises or silence < rules.noise_pause or (finished or 0.0) > 0.4:
            return None
        if spoken - self._noise_at < rules.noise_after:
            return None
        self._noise_at = spoken
        self._noises += 1
        return rules.noises[(self._noises - 1) % len(rules.noises)]

    def turn_over(self) -> None:
        """The user's turn has ended; the next one starts afresh."""
        self._past = self._past.next_turn()
        self._scores, self._asked = {}, ""
        self._noise_at = 0
