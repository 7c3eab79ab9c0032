"""The scorer on made-up runs whose right figures are known."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.audio.constants import PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.player import Player
from assistant.scenarios.expect import failures
from assistant.scenarios.format import Cue, Expectation, Role, Room, Scenario, Sound
from assistant.scenarios.microphone import Placed
from assistant.scenarios.score import Run, Scores, record, score
from assistant.scenarios.summary import summary
from assistant.scenarios.trace import Take
from assistant.scenarios.words import holds, holds_any, lost_words
from assistant.timeline.events import Event, EventType, Tokens, Turn
from assistant.timeline.record import Models, Timeline
from tests.scenarios.test_trace import speech_like
from voices import WordTiming

ANSWER = "one two three four five six"
WORD = PLAYBACK_RATE // 2
SOUND = speech_like(3.0, 7)
"""Half a second a word."""


def placed(role: Role, text: str, *spans: tuple[float, float]) -> Placed:
    samples = tuple((round(a * SAMPLE_RATE), round(b * SAMPLE_RATE)) for a, b in spans)
    cue = Cue(sound=Sound.COUGH) if role is Role.NOISE else Cue(say=text or "x")
    return Placed(cue, role, text, samples[0][0], samples)


class Stage:
    """Writes what an assistant would have done."""

    def __init__(self, seconds: float) -> None:
        self.said = np.zeros((round(seconds * 50), PLAYBACK_FRAME), np.float32)
        self.timeline = Timeline("virtual", "default", Models("a", "b", "c", "d"), PLAYBACK_RATE)

    def answer(
        self,
        at: float,
        heard: str = ANSWER,
        script: dict[int, str] | None = None,
        user: tuple[str, float, float] = ("", 0, 0),
    ) -> None:
        """The answer, in the air from `at` on, played as `script` says (frames from its start)."""
        first = round((at - 0.02) * 50)
        player = Player()
        player.begin()
        player.add(SOUND)
        player.complete()
        stopped = False
        for number in range(first, len(self.said)):
            what = (script or {}).get(number - first)
            if what == "stop":
                stopped = True
            if what:
                getattr(player, what)()
            self.said[number] = player.pull().sound
        index = len(self.timeline.turns)
        for event in (EventType.USER_TURN, EventType.ASSISTANT_TEXT):
            self.timeline.event(Event(at - 0.02, event, index, text=ANSWER))
        text, start, end = user
        tokens = Tokens(forwarded=12, context=100, after_endpoint=4)
        turn = Turn(index, text, start, end, ANSWER, heard, at, at + 3, interrupted=stopped, tokens=tokens)
        self.timeline.turn(turn)

    def run(self, *cues: Placed, room: Room | None = None, **wishes: object) -> Run:
        words = tuple(
            WordTiming(ANSWER.index(word), ANSWER.index(word) + len(word), place * WORD, (place + 1) * WORD)
            for place, word in enumerate(ANSWER.split())
        )
        takes = {ANSWER: {False: Take(PLAYBACK_RATE, SOUND, words)}}
        expect = Expectation(**wishes)  # type: ignore[arg-type]
        scenario = Scenario(name="made-up", user=(Cue(say="x"),), room=room, expect=expect)
        return Run(scenario, self.timeline, cues, 0, self.said, takes)


def test_latency_from_the_last_word_to_the_first_sound() -> None:
    stage = Stage(8)
    stage.answer(2.3, user=("what is it", 1.0, 2.0))
    found = score(stage.run(placed(Role.REQUEST, "what is it", (1.0, 2.0))))
    assert found.answered == [True] and found.latencies == [pytest.approx(300, abs=11)]
    assert found.words_lost == 0 and found.pauses == []
    assert (found.forwarded, found.after_endpoint) == ([12], [4])


def test_no_answer_is_a_miss() -> None:
    found = score(Stage(10).run(placed(Role.REQUEST, "hello", (1.0, 2.0))))
    assert found.answered == [False] and found.latencies == []
    assert found.words_lost == 1


def test_pauses_are_taken_or_not() -> None:
    cue = placed(Role.REQUEST, "what is it", (1.0, 1.5), (2.4, 3.0))
    patient, hasty = Stage(9), Stage(9)
    patient.answer(3.3)
    hasty.answer(1.8)
    assert score(patient.run(cue)).pauses == [False]
    assert score(hasty.run(cue)).pauses == [True]


def test_the_pause_before_a_continuation_counts() -> None:
    cues = placed(Role.UNFINISHED, "what is", (1.0, 1.5)), placed(Role.CONTINUATION, "the time", (2.4, 3.0))
    stage = Stage(9)
    stage.answer(3.25)
    found = score(stage.run(*cues))
    assert found.pauses == [False] and found.answered == [True]


def test_a_barge_in_by_the_sound() -> None:
    stage = Stage(10)
    # Ducked 60 ms, silent 200 ms after the onset at 2.0 s; the answer had 1.0 s in the air: two words of it.
    stage.answer(1.0, heard="one two", script={52: "duck", 59: "stop"})
    request, barge = placed(Role.REQUEST, "tell me", (0.2, 0.8)), placed(Role.BARGE_IN, "no", (2.0, 2.5))
    found = score(stage.run(request, barge)).barges[0]
    assert found.duck_ms == pytest.approx(45, abs=21)
    assert found.stop_ms == pytest.approx(200, abs=45)  # the sound is faint there
    assert found.heard_off == 0 and found.response_ms is None


@pytest.mark.parametrize(
    ("said", "understood", "lost"),
    [("Stop talking!", "Stop talking.", 0), ("Stop talking!", "Stop.", 1), ("Stop talking!", "", 2),
     ("Tell me more.", "Tell me more.", 3)],
)  # fmt: skip
def test_an_order_that_was_obeyed_by_silence_is_not_lost(said: str, understood: str, lost: int) -> None:
    stage = Stage(10)
    stage.answer(1.0, heard="one two", script={52: "stop"})
    if understood:
        stage.timeline.event(Event(2.4, EventType.PARTIAL, text=understood))
    assert score(stage.run(placed(Role.BARGE_IN, said, (2.0, 2.5)))).words_lost == lost


@pytest.mark.parametrize(
    ("remembered", "off"), [("one", 1), ("", 2), ("one tw", 0), ("one two three four", 2), ("one nine", 3)]
)
def test_heard_text_that_is_off(remembered: str, off: int) -> None:
    stage = Stage(10)
    stage.answer(1.0, heard=remembered, script={55: "stop"})
    found = score(stage.run(placed(Role.BARGE_IN, "no", (2.0, 2.5)))).barges[0]
    assert found.heard_off == off


@pytest.mark.parametrize(
    ("script", "on"), [({50: "hold", 80: "resume"}, True), ({50: "duck", 60: "resume"}, True), ({55: "stop"}, False)]
)
def test_false_alarms(script: dict[int, str], on: bool) -> None:
    stage = Stage(10)
    stage.answer(1.0, heard="one two", script=script)
    found = score(stage.run(placed(Role.BACKCHANNEL, "yeah", (2.0, 2.3))))
    assert found.went_on == [on] and found.backchannels == [not on]
    assert score(stage.run(placed(Role.NOISE, "", (2.0, 2.3)))).backchannels == []


def test_holds_that_nothing_explains_are_the_assistants_own() -> None:
    room = Room()
    calm, nervous = Stage(10), Stage(10)
    calm.answer(1.0)
    nervous.answer(1.0, script={50: "hold", 80: "resume", 100: "hold", 110: "resume"})
    cue = placed(Role.REQUEST, "tell me", (0.2, 0.8))
    assert score(calm.run(cue, room=room)).self_interruptions == 0
    quiet = placed(Role.REQUEST, "", (-9.0, -8.0))
    assert score(nervous.run(quiet, room=room)).self_interruptions == 2
    assert score(nervous.run(quiet, room=room)).minutes == pytest.approx(10 / 60)


@pytest.mark.parametrize(
    ("said", "understood", "lost"),
    [
        ("what is the capital", "What is the capital?", (0, 0)),
        ("what is the capital", "the capital", (2, 0)),
        ("what is the capital of France", "what is the capital", (0, 2)),
        ("what is the capital", "but is the capital", (0, 0)),
        ("my number is five two", "My number is 52.", (0, 1)),
        ("five five two seven", "5527", (0, 0)),
        ("hello", "", (1, 0)),
        ("hello", "yellow", (0, 0)),
    ],
)
def test_lost_words(said: str, understood: str, lost: tuple[int, int]) -> None:
    assert lost_words(said, understood) == lost


def test_texts_are_compared_with_some_mercy() -> None:
    assert holds("What is the capital of France?", "what is the capital of france")
    assert holds("What color is the sky?", "what colour is the sky")
    assert not holds("Hello there.", "what is the capital of France")
    assert holds_any("A spider has 8 legs.", "eight|8") and not holds_any("A spider has legs.", "eight|8")


def test_expectations_become_sentences() -> None:
    stage = Stage(10)
    stage.answer(2.9, user=("what is it", 1.0, 2.0), script={55: "stop"})
    cue = placed(Role.REQUEST, "what is it", (1.0, 2.0))
    run = stage.run(cue, turns=2, asked=("what is it",), answered=("seven",), uninterrupted=True, response_within=0.5)
    found = failures(run, score(run))
    assert len(found) == 4
    assert any("1 turns instead of 2" in line for line in found)
    assert any("without 'seven'" in line for line in found)
    assert any("broken off" in line for line in found)
    assert any("answered after 9" in line for line in found)


def test_summary_has_the_keys_that_readers_rely_on() -> None:
    stage = Stage(8)
    stage.answer(2.3)
    one = score(stage.run(placed(Role.REQUEST, "hello there", (1.0, 2.0))))
    found = summary([one, Scores()], [False, True])
    assert found["voice_to_voice_ms"]["p50"] == pytest.approx(300, abs=11) and found["voice_to_voice_ms"]["n"] == 1
    assert found["pause_tor"] is None and found["turn_tor"] == 1.0
    assert set(found["barge_in"]) >= {"duck_ms_p90", "stop_ms_p90", "response_ms_p50", "heard_within_1_word", "n"}
    assert set(found["open_speaker"]) == {"self_interruptions", "minutes", "barge_in_rate"}
    assert set(found) >= {"backchannel_tor", "false_alarm_resume", "interjection", "words_lost"}
    assert found["tokens_forwarded_per_turn"] == 12
    assert record(one)["voice_to_voice_ms"] == [pytest.approx(300, abs=11)]
