"""A spoken conversation through a microphone and a speaker, with nothing but the devices made up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.devices import look_again
from assistant.audio.resample import resample
from assistant.audio.sound_card import SoundCard
from assistant.build import converse
from assistant.desk import Desk
from assistant.ears.hypothesis import Mode
from assistant.live import FrontEnd, LiveSession, Wiring
from assistant.personas import load_persona
from assistant.timeline.events import Event, EventType, Turn
from tests.loaded import loaded
from tests.sound_card import samples_of, sound_server

PATIENCE = 60.0


class Watcher(FrontEnd):
    """Lets the test wait for the end of an answer."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.answered = threading.Event()

    def event(self, event: Event) -> None:
        if event.type is EventType.ASSISTANT_SPEECH_END:
            self.answered.set()

    def turn(self, turn: Turn) -> None:
        self.turns.append(turn)


@pytest.mark.device
def test_a_question_spoken_into_the_microphone_is_answered_from_the_speaker(
    smollm2_path: Path, whisper_path: Path, piper_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, persona = loaded(smollm2_path, whisper_path, piper_path), load_persona("default")
    question = parts.voice.synthesize("What is the capital of France?")
    user = resample(question.pcm, question.sample_rate, SAMPLE_RATE)

    def make(wiring: Wiring):
        return converse(parts, persona, wiring.workers, wiring.clock, wiring.on_event, wiring.on_turn, wiring.output)

    with sound_server() as server:
        for name in ("XDG_RUNTIME_DIR", "PULSE_SERVER"):
            monkeypatch.setenv(name, server.environment[name])
        look_again()
        watcher, desk = Watcher(), Desk(SoundCard())
        session = LiveSession(make, desk, watcher).start()
        session.wait_until_ready()
        try:
            desk.run(session)
            with server.recording_the_speaker() as file:
                server.play_into_microphone(user, SAMPLE_RATE).wait(20)
                assert watcher.answered.wait(PATIENCE), "no answer"
            session.close()
        finally:
            desk.close()
        answer = samples_of(file)
    look_again()
    turn = watcher.turns[-1]
    assert "capital" in turn.user_text.lower() and "France" in turn.user_text
    heard = parts.transcriber.transcribe(answer[-30 * SAMPLE_RATE :], Mode.FULL).text
    assert "Paris" in turn.assistant_text and "Paris" in heard, heard
