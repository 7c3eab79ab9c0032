"""The scenario file: what may be written, and what is said about what may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.scenarios.format import Cue, Role, Scenario, ScenarioError, Sound, load_folder, load_scenario
from assistant.scenarios.moments import Anchor, Moment, parse_moment

SHIPPED = Path(__file__).parents[1] / "audio" / "scenarios"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (1.5, Moment(Anchor.BEGINNING, 1.5)),
        ("0", Moment(Anchor.BEGINNING, 0.0)),
        ("1.2 after the assistant starts", Moment(Anchor.ASSISTANT_STARTS, 1.2)),
        ("1.2 s after the assistant starts", Moment(Anchor.ASSISTANT_STARTS, 1.2)),
        ("0.3 before the assistant ends", Moment(Anchor.ASSISTANT_ENDS, -0.3)),
        ("0.5 after user ends", Moment(Anchor.USER_ENDS, 0.5)),
        ("2 after all is quiet", Moment(Anchor.QUIET, 2.0)),
        ("0.02 after the endpoint", Moment(Anchor.ENDPOINT, 0.02)),
    ],
)
def test_moments(text: str | float, moment: Moment) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["soon", "1 before the user ends", "after the assistant starts", "1 after lunch"])
def test_impossible_moments(text: str) -> None:
    with pytest.raises(ValueError, match="moment|beforehand"):
        parse_moment(text)


def test_roles_have_defaults() -> None:
    assert Cue(say="Hello.").kind is Role.REQUEST
    assert Cue(sound=Sound.COUGH).kind is Role.NOISE
    assert Cue(say="Right.", role=Role.BACKCHANNEL).kind is Role.BACKCHANNEL


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("user: [{}]", "'say' or 'sound'"),
        ("user: [{say: Hi, sound: cough}]", "either speech"),
        ("user: [{say: Hi, at: soon}]", "user.0.at"),
        ("user: [{say: Hi, loud: 3}]", "user.0.loud"),
        ("user: [{say: Hi, gaps: [[1, 1]]}]", "'gaps' are for recordings"),
        ("users: []", "user"),
        ("room: {echo_db: -6, delay_ms: 5}\nuser: [{say: Hi}]", "room.delay_ms"),
        ("- a\n- b", "mapping"),
        ("user: [", "not valid YAML"),
    ],
)
def test_complaints_name_the_field(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "scene.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=complaint.replace("'", "['‘’]?")) as found:
        load_scenario(file)
    assert "\n" not in str(found.value) and str(file) in str(found.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match="no scenarios"):
        load_folder(tmp_path)


def test_a_persona_file_lies_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "scene.yaml").write_text("persona: ../me.yaml\nuser: [{say: Hi}]")
    assert load_scenario(tmp_path / "scene.yaml").persona == str(tmp_path / "../me.yaml")


def test_the_shipped_suite_covers_what_people_do() -> None:
    suite = load_folder(SHIPPED)
    roles = [cue.kind for scenario in suite for cue in scenario.user]
    assert len(suite) >= 60 and len({scenario.name for scenario in suite}) == len(suite)
    assert roles.count(Role.BARGE_IN) >= 15 and roles.count(Role.BACKCHANNEL) >= 8 and roles.count(Role.NOISE) >= 8
    paused = [cue for scenario in suite for cue in scenario.user if "[" in cue.say or cue.gaps]
    assert len(paused) >= 10
    assert all(scenario.about for scenario in suite)
    voices = {cue.voice.partition(":")[0] for scenario in suite for cue in scenario.user if cue.say}
    recorded = [cue for scenario in suite for cue in scenario.user if cue.recording]
    assert voices >= {"joe", "espeak"} and len(recorded) >= 8
    assert isinstance(suite[0], Scenario)
