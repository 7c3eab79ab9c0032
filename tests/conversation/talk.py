"""A conversation in a silent room on the virtual clock, with all real parts: what is typed is answered aloud."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assistant.audio.constants import FRAME
from assistant.build import Parts, converse
from assistant.conversation.conversation import Conversation
from assistant.conversation.workers import InlineWorkers
from assistant.personas import load_persona
from assistant.replay import VirtualClock
from assistant.timeline.events import Turn

SILENCE = np.zeros(FRAME, np.float32)


class Talk:
    """The conversation, and all that is heard of it."""

    def __init__(self, parts: Parts) -> None:
        self.turns: dict[int, Turn] = {}
        self.clock = VirtualClock()
        self._frames = 0
        self.conversation: Conversation = converse(
            parts, load_persona("default"), InlineWorkers(), self.clock.now, on_turn=self._turn
        )

    def _turn(self, turn: Turn) -> None:
        self.turns[turn.index] = turn

    def frames(self, count: int) -> np.ndarray:
        sound = []
        for _ in range(count):
            self.clock.until_frame(self._frames, self.conversation.deliver)
            self._frames += 1
            sound.append(self.conversation.frame(SILENCE).copy())
        return np.concatenate(sound)

    def until(self, happened: Callable[[], bool]) -> int:
        """Frames until something has happened; fails after twenty seconds of sound."""
        for frame in range(1_000):
            if happened():
                return frame
            self.frames(1)
        raise AssertionError("it never happened")
