"""Half an hour of mixed talk with 200 interruptions at random moments: no hang, no leak, no lost word, memory flat."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import pytest

from assistant.build import Parts
from assistant.replay import ClockKind
from assistant.scenarios.format import Cue, Role, Scenario, Sound
from assistant.scenarios.moments import Anchor, Moment
from assistant.scenarios.run import run_scenario, speakers_of
from assistant.scenarios.score import score

QUESTIONS = (
    "Tell me about the ocean.",
    "What is the capital of Spain?",
    "How many legs does a spider have?",
    "Please explain how bread is made.",
    "Tell me something about elephants.",
    "What is the capital of France?",
    "Why is the sky blue?",
)
NOISES = ("mm-hm", "Right.", "Yeah.", "Okay.")
ROUNDS = 20
CUTS_A_ROUND = 10
HEARD_OUT_A_ROUND = 8
"""Questions whose answers are heard to the end."""


def cues(dice: random.Random) -> tuple[Cue, ...]:
    """One round: a question, ten interruptions at random moments with noises in between, answers heard out."""
    voice = "joe:1.2"
    found = [Cue(say=dice.choice(QUESTIONS), voice=voice, at=Moment(Anchor.QUIET, 1.0))]
    for _ in range(CUTS_A_ROUND):
        if dice.random() < 0.3:
            noise = dice.choice(NOISES)
            found.append(Cue(say=noise, voice=voice, role=Role.BACKCHANNEL, at=Moment(Anchor.ASSISTANT_STARTS, 0.4)))
            found.append(_question(dice, Moment(Anchor.USER_ENDS, dice.uniform(0.6, 1.5))))
        elif dice.random() < 0.2:
            found.append(Cue(sound=Sound.COUGH, level_db=-14, at=Moment(Anchor.ASSISTANT_STARTS, 0.3)))
            found.append(_question(dice, Moment(Anchor.USER_ENDS, dice.uniform(0.6, 1.5))))
        elif dice.random() < 0.2:
            found.append(_question(dice, Moment(Anchor.ENDPOINT, dice.uniform(0.0, 0.2))))
        else:
            found.append(_question(dice, Moment(Anchor.ASSISTANT_STARTS, dice.uniform(0.05, 3.0))))
    for _ in range(HEARD_OUT_A_ROUND):
        question = dice.choice(QUESTIONS)
        found.append(Cue(say=question, voice=voice, at=Moment(Anchor.QUIET, dice.uniform(0.5, 3.0))))
    return tuple(found)


def _question(dice: random.Random, at: Moment) -> Cue:
    return Cue(say=dice.choice(QUESTIONS), voice="joe:1.2", role=Role.BARGE_IN, at=at)


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
def test_half_an_hour_with_200_interruptions(parts: Parts) -> None:
    dice = random.Random(5)
    speakers = speakers_of(parts)
    minutes = 0.0
    turns = lost = said = cuts = missed = 0
    memory = []
    for number in range(ROUNDS):
        scenario = Scenario(name=f"round {number}", user=cues(dice))
        run = run_scenario(parts, scenario, speakers, ClockKind.VIRTUAL)
        found = score(run)
        assert run.timeline.complete
        assert not [event for event in run.timeline.events if event.type.value == "error"]
        minutes += run.timeline.duration / 60
        turns += len(run.timeline.turns)
        cuts += sum(cue.role is Role.BARGE_IN for cue in run.placed)
        missed += run.missed
        lost += found.words_lost
        said += found.words_said
        heard_off = [barge.heard_off for barge in found.barges if barge.heard_off is not None]
        assert not heard_off or max(heard_off) <= 1, found
        del run
        gc.collect()
        memory.append(resident())
        print(f"round {number}: {minutes:.1f} min, {cuts} cuts, {lost}/{said} words lost, {memory[-1] / 1e6:.0f} MB")
    assert cuts + missed == ROUNDS * CUTS_A_ROUND and missed <= 2
    assert minutes >= 30
    assert lost <= 0.01 * said
    settled = memory[ROUNDS // 4]
    assert memory[-1] - settled < 40e6, [round(size / 1e6) for size in memory]
    assert turns >= cuts * 0.8
