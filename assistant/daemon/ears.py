"""Between the microphone and the conversation: a wake word, where one is chosen.

Asleep, the conversation hears silence. The word opens its ears; they stay open while anybody has the floor and for a
while after an answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.conversation.conversation import Conversation
from assistant.daemon.config import WakeChoice
from assistant.daemon.wake import WakeWord
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession, Status
from assistant.overlap import plain_words
from assistant.timeline.events import Event, EventType

PREROLL = 15
"""Frames from before the word was noticed that are heard (300 ms): a request may follow it without a pause."""
Frame = NDArray[np.float32]


class Ears(FrontEnd):
    """What the conversation hears. `hear` is called on the microphone's thread, the rest on the conversation's."""

    def __init__(self, choice: WakeChoice) -> None:
        """WakeError if the word or the library is not there."""
        self._choice = choice
        self._word = WakeWord(choice.word, choice.threshold) if choice.word is not None else None
        self._stops = {" ".join(plain_words(word)) for word in choice.stop_words}
        self._session: LiveSession | None = None
        self._past: deque[Frame] = deque(maxlen=PREROLL)
        self._silence = np.zeros(FRAME, np.float32)
        self._phase = Phase.LISTENING
        self._open = 0
        """Frames until the ears close again, counted while nobody has the floor."""
        self._over_answer = False
        """The present utterance began over an answer."""
        self._words = ""

    def use(self, session: LiveSession) -> None:
        """The conversation these ears belong to."""
        self._session = session

    @property
    def asleep(self) -> bool:
        """Whether the wake word is waited for."""
        return self._word is not None and self._open <= 0 and self._phase is Phase.LISTENING

    def hear(self, frame: Frame, *, muted: bool) -> Iterable[Frame]:
        """What the conversation hears instead of `frame`: the same, silence, or more of it at once."""
        if self._word is None or muted:
            return (frame,)
        woken = self._word.push(frame)
        if not self.asleep:
            if self._phase is Phase.LISTENING:
                self._open -= 1
            if woken:
                self._wake()
            return (frame,)
        self._past.append(frame)
        if not woken:
            return (self._silence,)
        self._wake()
        past = tuple(self._past)
        self._past.clear()
        return past

    def _wake(self) -> None:
        answering = self._phase in (Phase.THINKING, Phase.SPEAKING)
        self._open = self._follow_up()
        if self._session is not None and self._word is not None:
            if answering:
                self._session.stop()
            self._session.tell(EventType.WAKE, self._word.name)

    def _follow_up(self) -> int:
        return max(1, round(self._choice.follow_up * SAMPLE_RATE / FRAME))

    # --- the conversation's side ------------------------------------------------------------------------------

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        if self._word is None:
            return
        if status.phase is Phase.LISTENING and self._phase in (Phase.THINKING, Phase.SPEAKING):
            self._open = self._follow_up()
        elif status.phase is Phase.LISTENING and self._phase in (Phase.USER, Phase.PAUSE):
            if self._over_answer and self._words in self._stops:  # obeyed already, and no turn
                self._open = 0
            self._over_answer = False
        self._phase = status.phase

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        if self._word is None or self._session is None:
            return
        if event.type is EventType.BARGE_IN:
            self._over_answer = True
        elif event.type is EventType.PARTIAL:
            self._words = " ".join(plain_words(event.text or ""))
        elif event.type is EventType.USER_TURN:
            over, self._over_answer = self._over_answer, False
            if over and " ".join(plain_words(event.text or "")) in self._stops:
                self._session.call(self._forget)

    def _forget(self, conversation: Conversation) -> None:
        conversation.stop(forget=True)
        self._phase = Phase.LISTENING  # before the status says so, for which an answer's end opens the ears
        self._open = 0
