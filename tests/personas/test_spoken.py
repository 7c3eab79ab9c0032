"""The shipped personas in spoken conversations on the virtual clock: each must behave, not only talk, differently."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.build import Parts, character, converse
from assistant.conversation.workers import InlineWorkers
from assistant.floor import Phase
from assistant.live import Status
from assistant.mouth import PersonaMouth
from assistant.overlap import Reaction, classify
from assistant.personas import Persona, VoiceChoice, load_persona
from assistant.personas.live import LivePersona
from assistant.replay import VirtualClock, replay
from assistant.timeline.events import Event, EventType, Turn
from tests.audio.speech import SpeechMaker
from tests.loaded import loaded
from voices import Clause, Voice
from voices.piper import SpeechPiece

S = SAMPLE_RATE


@pytest.fixture(scope="module")
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    return loaded(smollm2_path, whisper_path, piper_path)


def quiet(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * S), np.float32)


class Talk:
    """One persona hears `sound`; what came of it."""

    def __init__(self, parts: Parts, name: str, *sounds: np.ndarray, greet: bool = False, **silent: bool) -> None:
        persona = load_persona(name)
        self.events: list[Event] = []
        self.turns: dict[int, Turn] = {}
        clock = VirtualClock()
        conversation = converse(
            parts,
            persona,
            InlineWorkers(),
            clock.now,
            self.events.append,
            lambda turn: self.turns.__setitem__(turn.index, turn),
            **silent,
        )
        if greet:
            conversation.greet(persona.greeting)
        sound = np.concatenate(sounds)
        frames = iter(sound[: len(sound) // FRAME * FRAME].reshape(-1, FRAME))
        replay(conversation, frames, clock, lambda heard, said: None)
        conversation.close()

    def of(self, type_: EventType) -> list[Event]:
        return [event for event in self.events if event.type is type_]


def test_the_listener_waits_longer_and_murmurs(parts: Parts, speech: SpeechMaker) -> None:
    first = speech.user("Yesterday in the afternoon I took the bus into town to see my old friend, and then,")
    rest = speech.user("we talked about the good old days.")
    sound = (quiet(0.5), first, quiet(1.7), rest, quiet(1))
    ends = {name: Talk(parts, name, *sound, silent=True) for name in ("default", "listener")}
    patient = ends["listener"]
    assert len(patient.of(EventType.USER_TURN)) == 1, "a pause of 1.7 s is no end for the patient one"
    assert len(ends["default"].of(EventType.USER_TURN)) >= 2
    waits = [talk.of(EventType.ENDPOINT)[-1].silence or 0.0 for talk in ends.values()]
    assert waits[1] >= 2 * waits[0]
    assert patient.of(EventType.LISTENING_NOISE) and not ends["default"].of(EventType.LISTENING_NOISE)


def test_the_quiz_master_greets_cuts_in_and_does_not_like_silence(parts: Parts, speech: SpeechMaker) -> None:
    guess = speech.user("I am quite sure that it is Sydney, because I was there with my family and it was so large.")
    talk = Talk(parts, "quiz", quiet(5), guess, quiet(19), greet=True)
    quiz = load_persona("quiz")
    assert talk.turns[0].heard_text == quiz.greeting
    (cut,) = talk.of(EventType.INTERJECTION)
    assert cut.reason == "wrong capital" and cut.t < 5 + len(guess) / S - 1, "while the user still speaks"
    assert talk.turns[1].heard_text == "No, it is Canberra! Next question. Which planet is the largest?"
    assert talk.turns[1].speech_start is not None and talk.turns[1].speech_start - cut.t < 0.1
    assert quiz.silence is not None and talk.turns[2].heard_text == quiz.silence.say[0]
    assert talk.turns[2].user_text == ""


def test_only_new_words_stop_one_who_is_hard_to_interrupt(parts: Parts) -> None:
    rules = {
        name: character(parts, load_persona(name), silent=True).settings.floor.overlap
        for name in ("listener", "default", "dispatcher")
    }
    spoken = round(0.3 * S)

    def verdicts(text: str, spoken: int, complete: bool = False) -> list[Reaction]:
        return [classify(text, spoken, complete=complete, rules=rule) for rule in rules.values()]

    assert verdicts("my dog", spoken) == [Reaction.STOP, Reaction.WAIT, Reaction.WAIT]
    assert verdicts("my dog", 2 * spoken) == [Reaction.STOP, Reaction.STOP, Reaction.WAIT]
    assert verdicts("my dog", 2 * spoken, True) == [Reaction.STOP, Reaction.STOP, Reaction.GO_ON]
    assert verdicts("my dog is ill", 4 * spoken) == [Reaction.STOP] * 3
    assert verdicts("stop", spoken) == [Reaction.STOP] * 3
    assert verdicts("mm-hm", spoken, True) == [Reaction.GO_ON] * 3


def test_german_listening_noises(parts: Parts) -> None:
    german = Persona(system="Du bist kurz.", language="de", backchannels=True)
    settings = character(parts, german, silent=True).settings
    assert classify("ach so, genau", S // 2, complete=True, rules=settings.floor.overlap) is Reaction.GO_ON
    assert classify("warte", S // 5, complete=False, rules=settings.floor.overlap) is Reaction.STOP
    assert settings.interjections.noises == ("Mhm.", "Ja.", "Verstehe.")


# --- voices -------------------------------------------------------------------------------------------------------

LINE = Clause("This laboratory is closed today.", 0)


def spoken(mouth: PersonaMouth, *, quickly: bool = False) -> tuple[np.ndarray, list]:
    pieces = list(mouth.stream(LINE, quickly=quickly))
    return np.concatenate([piece.pcm for piece in pieces]), [word for piece in pieces for word in piece.words]


@pytest.mark.parametrize("name", ["lab", "dispatcher"])
def test_effects_change_the_sound_and_not_the_timing(parts: Parts, name: str) -> None:
    choice = load_persona(name).voice
    dry, words = spoken(PersonaMouth(parts.voice, replace_effects(choice)))
    mouth = PersonaMouth(parts.voice, choice)
    wet, same = spoken(mouth)
    assert wet.shape == dry.shape and [w.start_sample for w in same] == [w.start_sample for w in words]
    likeness = abs(float(np.corrcoef(wet, dry)[0, 1]))
    assert likeness < 0.9, "it must be heard"
    assert np.abs(wet).max() <= 1 and 0.3 < np.sqrt(np.mean(wet**2) / np.mean(dry**2)) < 3
    streamed, _ = spoken(mouth.fresh(), quickly=True)
    short = min(len(streamed), len(wet))
    assert np.abs(streamed[:short] - wet[:short]).max() < 0.02, "in stretches as in one go"


def test_a_hall_rings_on_and_only_once(parts: Parts) -> None:
    mouth = PersonaMouth(parts.voice, VoiceChoice(effects=("hall",)))
    spoken(mouth)
    assert mouth.fresh().tail().size == 0, "another answer has nothing to ring"
    assert mouth.tail().size > parts.voice.sample_rate // 10
    assert mouth.tail().size == 0


def replace_effects(choice: VoiceChoice) -> VoiceChoice:
    return choice.model_copy(update={"effects": ()})


def test_speed_and_variation_are_the_persona_s(parts: Parts) -> None:
    slow, _ = spoken(PersonaMouth(parts.voice, load_persona("tutor").voice))
    quick, _ = spoken(PersonaMouth(parts.voice, load_persona("quiz").voice))
    flat, _ = spoken(PersonaMouth(parts.voice, VoiceChoice(variation=0.0)))
    usual, _ = spoken(PersonaMouth(parts.voice, VoiceChoice()))
    assert len(slow) > 1.15 * len(quick)
    assert flat.shape != usual.shape or not np.array_equal(flat, usual)


class CountingVoice:
    """A voice that counts what it is asked for."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self.sample_rate = voice.sample_rate
        self.asked: list[str] = []

    def stream(self, text: str, **how: object):  # noqa: ANN201
        self.asked.append(text)
        return self._voice.stream(text, **how)


def test_fixed_phrases_are_made_before_they_are_needed(parts: Parts) -> None:
    voice = CountingVoice(parts.voice)
    quiz = load_persona("quiz")
    two = quiz.interjections.model_copy(update={"reasons": quiz.interjections.reasons[:2]})
    quiz = quiz.model_copy(update={"interjections": two, "silence": None})
    conversation = converse(replace(parts, voice=voice), quiz, InlineWorkers(), VirtualClock().now)
    silence = np.zeros(FRAME, np.float32)
    for _ in range(40 * 50):
        conversation.frame(silence)
        if not conversation._dialogue._mouth._rehearsal.waiting:
            break
    assert not conversation._dialogue._mouth._rehearsal.waiting
    known = len(voice.asked)
    (reason,) = [reason for reason in quiz.interjections.reasons if reason.name == "wrong capital"]
    conversation.greet(reason.say)
    for _ in range(20):
        conversation.frame(silence)
    assert len(voice.asked) == known, voice.asked[known:]
    conversation.close()


def test_what_rings_on_is_heard_behind_the_last_word(parts: Parts) -> None:
    ringing = RingingMouth()
    persona = load_persona("default")
    conversation = converse(parts, persona, InlineWorkers(), VirtualClock().now, silent=True)
    conversation._dialogue._mouth = ringing
    draft = conversation._dialogue.draft(_greeting("Good day. And good night."))
    sounds = []
    while not (step := draft.reply.step()).finished:
        sounds.append(step.piece.sound)
    assert len(sounds) >= 3 and ringing.tails == 1
    assert float(np.abs(sounds[-1]).max()) > 0.2, "the tail comes once, at the end"
    conversation.close()


def _greeting(text: str):  # noqa: ANN202
    from assistant.conversation.turns import Prompt

    return Prompt("", text, only_opening=True)


class RingingMouth:
    """Silent words and a loud tail."""

    sample_rate = 24_000

    def __init__(self) -> None:
        self.tails = 0

    def fresh(self) -> RingingMouth:
        return self

    def stream(self, clause: Clause, *, quickly: bool):  # noqa: ANN201
        yield SpeechPiece(np.zeros(2400, np.float32), 0, ())

    def tail(self) -> np.ndarray:
        self.tails += 1
        return np.full(1200, 0.5, np.float32)

    def rehearse(self) -> bool:
        return False


# --- live ---------------------------------------------------------------------------------------------------------


class StubSession:
    """Stands where `LiveSession` would, on a real conversation."""

    def __init__(self, conversation) -> None:  # noqa: ANN001
        self.conversation = conversation
        self.fronts: list[object] = []
        self.keys: list[bool] = []
        self.told: list[str] = []

    def attach(self, front: object) -> None:
        self.fronts.append(front)

    def call(self, job: Callable) -> None:
        job(self.conversation)

    def push_to_talk(self, wanted: bool) -> None:
        self.keys.append(wanted)

    def tell(self, type_: EventType, text: str) -> None:
        self.told.append(text)


def test_a_file_changed_while_it_speaks_takes_over_at_the_next_turn(
    parts: Parts, own: Callable[[str, str], Path]
) -> None:
    path = own("sailor", "system: You are an old sailor.\ngreeting: Ahoy.\npush_to_talk: true\n")
    events: list[Event] = []
    turns: list[Turn] = []
    persona = load_persona("sailor")
    conversation = converse(
        parts, persona, InlineWorkers(), VirtualClock().now, events.append, turns.append, silent=True
    )
    session = StubSession(conversation)
    live = LivePersona(session, "sailor", persona, lambda persona: character(parts, persona, silent=True))
    live.begin()
    assert session.keys == [True] and session.fronts == [live]

    def frames(count: int) -> None:
        for _ in range(count):
            conversation.frame(np.zeros(FRAME, np.float32))

    frames(20)
    assert turns and turns[0].assistant_text == "Ahoy."
    path.write_text("system: You are a young pirate.\npatience: 3\n")
    os.utime(path, ns=(10**18, 10**18))
    live.status(Status(1.5, Phase.SPEAKING))
    frames(2)
    assert "sailor" in parts.engine.tokenizer.decode(conversation._dialogue._head), "not in the middle of a turn"
    live.status(Status(2.0, Phase.LISTENING))
    frames(2)
    assert "pirate" in parts.engine.tokenizer.decode(conversation._dialogue._head)
    assert conversation._settings.floor.endpoint.patience == 3 and session.keys == [True, False]
    assert "Ahoy." in parts.engine.tokenizer.decode(conversation._dialogue.base.ids), "what was said stays"

    path.write_text("sytem: You are nobody.\n")
    os.utime(path, ns=(2 * 10**18, 2 * 10**18))
    for moment in (2.5, 3.5, 5.0):
        live.status(Status(moment, Phase.LISTENING))
    assert len(session.told) == 1 and "sytem is no field; did you mean 'system'?" in session.told[0]
    assert live.persona.patience == 3

    live.become("dispatcher")
    frames(2)
    assert session.keys == [True, False, True]
    assert "radio" in parts.engine.tokenizer.decode(conversation._dialogue._head)
    conversation.close()


def test_another_voice_is_loaded_when_a_persona_wants_it(parts: Parts, piper_path: Path, tmp_path: Path) -> None:
    from assistant.models.errors import ModelError
    from assistant.mouth import VoiceShelf

    shelf = VoiceShelf(1, one_for_all=False)
    assert shelf.other("piper-joe") is None and shelf.other("piper-joe") is None
    voice = shelf.other(str(piper_path))  # a file of its own, here the same sound
    assert voice is not None and voice is not parts.voice and shelf.other(str(piper_path)) is voice
    with pytest.raises(ModelError, match="no-such-voice"):
        shelf.other("no-such-voice")
    chosen = VoiceShelf(1, one_for_all=True)
    assert chosen.other("piper-joe") is None and chosen.other(str(piper_path)) is None
