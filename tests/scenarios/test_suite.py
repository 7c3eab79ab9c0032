"""Every scene of the suite with the real models, virtual clock (minutes: `make test-slow`)."""

from __future__ import annotations

import pytest

from assistant.bench.voice_bench import SCENARIOS
from assistant.build import Parts
from assistant.replay import ClockKind
from assistant.scenarios.expect import failures
from assistant.scenarios.format import Scenario, load_folder
from assistant.scenarios.recordings import MissingVoice
from assistant.scenarios.run import run_scenario, speakers_of
from assistant.scenarios.score import score

OUT_OF_REACH = {
    "interject_danger_judged": "the 135M model does not find \"that is dangerous\" any likelier",
    "pause_human_well": "\"It's easy to tell.\" is a whole sentence, and 0.7 s of silence follow",
}
SCENES = [scenario for scenario in load_folder(SCENARIOS) if not scenario.long]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENES, ids=lambda scenario: scenario.name)
def test_scene(parts: Parts, scenario: Scenario) -> None:
    try:
        run = run_scenario(parts, scenario, speakers_of(parts, SCENARIOS), ClockKind.VIRTUAL)
    except MissingVoice as error:
        pytest.skip(str(error))
    found = failures(run, score(run))
    if found and scenario.name in OUT_OF_REACH:
        pytest.xfail(OUT_OF_REACH[scenario.name])
    assert found == []
