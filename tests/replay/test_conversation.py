"""A spoken conversation with a barge-in, through every real part: what was heard, said, kept and computed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import soundfile

import assistant.timeline
from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.build import Parts
from assistant.overlap import plain_words
from assistant.timeline.events import EventType
from assistant.timeline.record import Timeline
from tests.replay.conftest import DEMO, LINES, Run, word_errors

SCHEMA = json.loads((Path(assistant.timeline.__file__).parent / "schema.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def conversation(run: Run, folder: Path) -> Timeline:
    return run(DEMO, out=folder / "out.wav", timeline=folder / "t.json", html=folder / "t.html")


def test_all_turns_are_heard_and_answered(conversation: Timeline) -> None:
    assert len(conversation.turns) == len(LINES)
    heard = " ".join(turn.user_text for turn in conversation.turns)
    assert word_errors(" ".join(LINES), heard) <= 0.10
    assert all(turn.assistant_text.strip() for turn in conversation.turns)


def test_only_the_answer_that_was_cut_into_is_cut(conversation: Timeline) -> None:
    assert [turn.interrupted for turn in conversation.turns] == [False, True, False, False]
    cut = conversation.turns[1]
    assert cut.heard_text and cut.assistant_text.startswith(cut.heard_text) and cut.heard_text != cut.assistant_text
    for turn in conversation.turns:
        if not turn.interrupted:
            assert turn.heard_text == turn.assistant_text


def test_the_heard_text_is_what_was_in_the_air(conversation: Timeline, folder: Path, parts: Parts) -> None:
    cut = conversation.turns[1]
    assert cut.speech_start is not None and cut.speech_end is not None
    sound, rate = soundfile.read(folder / "out.wav", dtype="float32")
    said = sound[round(cut.speech_start * rate) : round((cut.speech_end + 0.05) * rate), 1]
    in_the_air = plain_words(parts.transcriber.transcribe(resample(said, rate, SAMPLE_RATE)).text)
    heard = plain_words(cut.heard_text)
    # The cut is right within a word; what Whisper makes of the rest ("a rainbow is" as "rainbows") is not the point.
    assert heard[-1] in in_the_air[-2:] or in_the_air[-1] in heard[-2:]
    assert word_errors(" ".join(heard), " ".join(in_the_air)) <= 0.35
    after = sound[round((cut.speech_end + 0.05) * rate) : round(conversation.turns[2].user_end * rate), 1]
    assert np.abs(after).max() == 0.0


def test_each_turn_computes_only_what_it_adds(conversation: Timeline, parts: Parts) -> None:
    for before, turn in zip([None, *conversation.turns], conversation.turns, strict=False):
        added = len(parts.engine.template.user(turn.user_text))
        tokens = turn.tokens
        assert 0 < tokens.forwarded <= added
        assert tokens.after_endpoint <= 12  # the last words and the template's closing tokens
        if before is not None:
            assert tokens.referenced + tokens.copied >= before.tokens.context
            assert tokens.forwarded + tokens.referenced + tokens.copied == before.tokens.context + added
    kept = conversation.turns[1].tokens
    assert kept.context < conversation.turns[1].tokens.referenced + kept.forwarded + 40


def test_answers_come_within_the_wait_for_silence(conversation: Timeline) -> None:
    """On the virtual clock computing takes no time: what is left is the decision, and it is quick for questions."""
    for turn in conversation.turns:
        assert turn.latency.voice_to_voice is not None and 0.1 < turn.latency.voice_to_voice < 0.35


def test_the_cut_ducks_first_and_stops_on_words(conversation: Timeline) -> None:
    order = [event.type for event in conversation.events]
    duck, cut = order.index(EventType.DUCK), order.index(EventType.BARGE_IN)
    assert duck < cut
    events = conversation.events
    assert events[cut].t - events[duck].t < 0.6


def test_the_outputs_are_whole(conversation: Timeline, folder: Path) -> None:
    data = json.loads((folder / "t.json").read_text())
    jsonschema.validate(data, SCHEMA)
    assert data["complete"] and data["clock"] == "virtual" and data["compute_costs_time"] is False
    info = soundfile.info(folder / "out.wav")
    assert info.channels == 2 and info.samplerate == data["sample_rate"]
    assert abs(info.duration - data["duration"]) < 1e-6
    assert "</html>" in (folder / "t.html").read_text()


def test_the_left_side_is_the_microphone(folder: Path, conversation: Timeline, demo_sound: np.ndarray) -> None:
    sound, rate = soundfile.read(folder / "out.wav", dtype="float32")
    left = resample(sound[:, 0], rate, SAMPLE_RATE)[: len(demo_sound)]
    assert np.corrcoef(left, demo_sound[: len(left)])[0, 1] > 0.99


def test_a_second_run_is_the_same(conversation: Timeline, run: Run, tmp_path: Path, folder: Path) -> None:
    again = run(DEMO, out=tmp_path / "out.wav", timeline=tmp_path / "t.json")
    assert again.as_json() == conversation.as_json()
    assert (tmp_path / "out.wav").read_bytes() == (folder / "out.wav").read_bytes()
