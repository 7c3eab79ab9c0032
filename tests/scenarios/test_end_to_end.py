"""A handful of the suite's scenes with the real models, virtual clock: what must follow follows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import PLAYBACK_RATE
from assistant.audio.resample import resample
from assistant.bench.voice_bench import SCENARIOS, VoiceBench, chosen, measure
from assistant.build import Parts
from assistant.ears.hypothesis import Mode
from assistant.overlap import plain_words
from assistant.personas import load_persona
from assistant.replay import ClockKind
from assistant.run_replay import ReplayRequest, replay_with
from assistant.scenarios.expect import failures
from assistant.scenarios.format import Cue, Expectation, Role, Scenario, load_scenario
from assistant.scenarios.moments import parse_moment
from assistant.scenarios.run import files_in, run_scenario, speakers_of
from assistant.scenarios.score import Run, score

NAMES = (
    "request_spider",
    "pause_08_i_would_like",
    "backchannel_right",
    "noise_coughs",
    "barge_in_twice",
    "barge_in_last_word",
    "nothing_pink",
)


def run(parts: Parts, scenario: Scenario, folder: Path | None = None) -> Run:
    files = files_in(folder, scenario.name) if folder is not None else None
    return run_scenario(parts, scenario, speakers_of(parts, SCENARIOS), ClockKind.VIRTUAL, files)


@pytest.mark.parametrize("name", NAMES)
def test_scene(parts: Parts, name: str) -> None:
    found = run(parts, load_scenario(SCENARIOS / f"{name}.yaml"))
    assert failures(found, score(found)) == []


def test_heard_text_is_what_a_listener_heard(parts: Parts, tmp_path: Path) -> None:
    """The right channel up to the cut, given to the recogniser: the same words but for one."""
    cues = (
        Cue(say="Tell me about the ocean.", voice="joe:1.2", at=parse_moment(1.0)),
        Cue(
            say="What is the capital of Spain?",
            voice="joe:1.2",
            at=parse_moment("2.4 after the assistant starts"),
            role=Role.BARGE_IN,
        ),
    )
    found = run(parts, Scenario(name="cut", user=cues, expect=Expectation(interrupted=1)), tmp_path)
    first = found.timeline.turns[0]
    assert failures(found, score(found)) == [] and first.speech_end is not None
    sound, rate = soundfile.read(tmp_path / "cut.wav", dtype="float32")
    assert rate == PLAYBACK_RATE
    said = resample(np.ascontiguousarray(sound[: round(first.speech_end * rate), 1]), rate, 16_000)
    words = plain_words(parts.transcriber.transcribe(said, Mode.FINAL).text)
    remembered = plain_words(first.heard_text)
    assert len(remembered) >= 3 and abs(len(words) - len(remembered)) <= 1
    assert sum(a == b for a, b in zip(words, remembered, strict=False)) >= len(remembered) - 2


def test_a_scenario_is_replayed_like_a_recording(parts: Parts, tmp_path: Path, capsys) -> None:
    request = ReplayRequest(
        SCENARIOS / "request_sky.yaml", tmp_path / "out.wav", tmp_path / "t.json", clock=ClockKind.VIRTUAL
    )
    scenario = load_scenario(request.recording)
    record = replay_with(parts, load_persona("default"), request, scenario)
    assert len(record.turns) == 1 and "sky" in record.turns[0].user_text.lower()
    assert (tmp_path / "t.json").is_file() and soundfile.info(tmp_path / "out.wav").channels == 2
    assert "all as the scenario wishes" in capsys.readouterr().out


def test_the_bench_reports_a_row_a_scenario(parts: Parts, tmp_path: Path) -> None:
    bench = VoiceBench(only=("short_yes",), repeat=2, clock=ClockKind.VIRTUAL, out=tmp_path)
    found = measure(parts, chosen(bench), bench)
    (row,) = found["scenarios"]
    assert row["name"] == "short_yes" and row["runs"] == 2 and Path(row["timeline"]).is_file()
    assert found["turn_tor"] == 1.0 and found["voice_to_voice_ms"]["n"] == 2
    assert found["voice_to_voice_ms"]["p50"] < 600
