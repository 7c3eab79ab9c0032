"""A conversation to show that follows a script: what the app may ask for is noted."""

from __future__ import annotations

from assistant.chat.chat import Means
from assistant.floor import Phase
from assistant.live import Status
from assistant.personas import Persona, VoiceChoice
from assistant.timeline.events import Event, EventType, Latency, Tokens, Turn
from assistant.tui.app import ChatApp


class NotedSession:
    """Takes a live session's orders."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def __getattr__(self, name: str):
        return lambda *given: self._asked.append(" ".join([name, *map(str, given)]))


class Stage:
    """Stands for `Chat`."""

    def __init__(self, means: Means | None = None) -> None:
        self.asked: list[str] = []
        self.session = NotedSession(self.asked)
        self.persona = Persona(name="default", system="Be brief.", voice=VoiceChoice(name="piper-joe"))
        self.devices = (None, None)
        self.names = "whisper-tiny.en, SmolLM2-135M-Instruct.Q4_1, en_US-joe-medium"
        self.means = means or Means()

    def become(self, name: str) -> None:
        self.asked.append(f"become {name}")

    def use(self, microphone, speaker) -> None:
        self.asked.append(f"use {microphone} {speaker}")


def level(loud: float) -> tuple[float, ...]:
    return (loud,) * 5


def play(app: ChatApp) -> None:
    """Two turns, the second one cut into by words that are still coming."""
    front = app.front
    event = EventType
    front.event(Event(2.0, event.USER_TURN, turn=0, text="What is the capital of France?"))
    front.event(Event(2.3, event.ASSISTANT_TEXT, turn=0, text="The capital of France is Paris."))
    front.turn(Turn(0, "What is the capital of France?", 0.5, 2.0, "The capital of France is Paris."))
    front.event(Event(7.0, event.USER_TURN, turn=1, text="Tell me how a rainbow is made."))
    front.event(Event(7.3, event.ASSISTANT_TEXT, turn=1, text="A rainbow is made when light"))
    front.event(Event(7.9, event.ASSISTANT_TEXT, turn=1, text=" passes through drops of water."))
    front.event(Event(9.0, event.BACKCHANNEL, text="Uh-huh."))
    front.event(Event(9.8, event.PARTIAL, text="wait how many legs", stable="wait how many"))
    front.turn(
        Turn(
            1,
            "Tell me how a rainbow is made.",
            5.0,
            7.0,
            assistant_text="A rainbow is made when light passes through drops of water.",
            heard_text="A rainbow is made when light passes",
            speech_start=7.284,
            speech_end=10.0,
            interrupted=True,
            latency=Latency(0.132, 0.118, 0.155, 0.196, 0.241, 0.284),
            tokens=Tokens(forwarded=17, referenced=161, copied=6, context=196),
        )
    )
    front.status(Status(10.1, Phase.USER, level(0.4), level(0.0)))
