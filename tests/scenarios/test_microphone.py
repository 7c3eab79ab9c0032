"""Cues begin when their moment has come, to the sample, and the labels say where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, SAMPLE_RATE
from assistant.scenarios.format import Background, Cue, Role, Room, Scenario, Sound
from assistant.scenarios.microphone import PATIENCE, ScenarioMicrophone
from assistant.scenarios.moments import Anchor, Moment
from assistant.scenarios.speakers import Speakers
from assistant.timeline.events import Event, EventType


def chime(anchor: Anchor, offset: float) -> Cue:
    return Cue(sound=Sound.CHIME, level_db=-12.0, at=Moment(anchor, offset))


@dataclass
class Talk:
    """An assistant that does what the test says."""

    idle: bool = True
    sound_left: float | None = None


def scene(*cues: Cue, **more: object) -> Scenario:
    return Scenario(name="scene", user=cues, **{"background": (), "listen": 0.0, **more})  # type: ignore[arg-type]


def frames(microphone: ScenarioMicrophone, talk: Talk, script: Mapping[float, object] | None = None) -> np.ndarray:
    """All sound until the microphone is done; `script`: seconds -> what happens (an event, or a call)."""
    due = sorted((script or {}).items())
    heard: list[np.ndarray] = []
    for frame in microphone.frames(talk):
        heard.append(frame)
        while due and due[0][0] <= len(heard) * FRAME / SAMPLE_RATE:
            what = due.pop(0)[1]
            microphone.event(what) if isinstance(what, Event) else what()  # type: ignore[operator]
        assert len(heard) < 50 * 120
    return np.concatenate(heard)


def first_loud(sound: np.ndarray) -> float:
    return int(np.flatnonzero(np.abs(sound) > 1e-3)[0]) / SAMPLE_RATE


def test_a_time() -> None:
    microphone = ScenarioMicrophone(scene(chime(Anchor.BEGINNING, 1.2345)), Speakers())
    sound = frames(microphone, Talk())
    placed = microphone.placed[0]
    assert placed.start == round(1.2345 * SAMPLE_RATE) and placed.role is Role.NOISE
    # The chime itself begins after 50 ms.
    assert first_loud(sound) == pytest.approx(1.2345 + 0.05, abs=0.002)


def test_after_the_cue_before() -> None:
    cues = chime(Anchor.BEGINNING, 0.5), chime(Anchor.USER_ENDS, 0.25)
    microphone = ScenarioMicrophone(scene(*cues), Speakers())
    frames(microphone, Talk())
    first, second = microphone.placed
    assert second.start == round((first.end + 0.25) * SAMPLE_RATE)


def test_after_the_assistant_starts_counts_from_its_first_sample() -> None:
    started = Event(2.0, EventType.ASSISTANT_SPEECH_START, at=2.0072)
    cue = chime(Anchor.ASSISTANT_STARTS, 1.2)
    microphone = ScenarioMicrophone(scene(cue), Speakers())
    frames(microphone, Talk(), {2.0: started})
    assert microphone.placed[0].start == round(3.2072 * SAMPLE_RATE)


def test_an_answer_from_before_does_not_count() -> None:
    cues = (
        chime(Anchor.ASSISTANT_STARTS, 0.5),
        chime(Anchor.ASSISTANT_STARTS, 0.5),
    )
    microphone = ScenarioMicrophone(scene(*cues), Speakers())
    starts = {t: Event(t, EventType.ASSISTANT_SPEECH_START, at=t) for t in (1.0, 4.0)}
    frames(microphone, Talk(), starts)
    assert [round(cue.start / SAMPLE_RATE, 2) for cue in microphone.placed] == [1.5, 4.5]


def test_before_the_assistant_ends() -> None:
    talk = Talk(idle=False)
    microphone = ScenarioMicrophone(scene(chime(Anchor.ASSISTANT_ENDS, -0.3)), Speakers())

    def left(value: float | None) -> object:
        return lambda: setattr(talk, "sound_left", value)

    script = {
        1.0: Event(1.0, EventType.ASSISTANT_SPEECH_START, at=1.0),
        1.02: left(0.9),
        2.0: left(0.25),
        2.5: left(None),
        2.6: lambda: setattr(talk, "idle", True),
    }
    frames(microphone, talk, script)
    assert microphone.placed[0].start == 2 * SAMPLE_RATE


def test_a_moment_that_never_comes_is_missed_and_the_run_ends() -> None:
    cue = chime(Anchor.ASSISTANT_STARTS, 0.5)
    microphone = ScenarioMicrophone(scene(cue), Speakers())
    sound = frames(microphone, Talk())
    assert microphone.missed == [cue] and not microphone.placed
    assert sound.size / SAMPLE_RATE == pytest.approx(PATIENCE + 1.0, abs=0.1)


def test_all_is_quiet_waits_for_rest() -> None:
    talk = Talk()
    cues = chime(Anchor.BEGINNING, 0.0), chime(Anchor.QUIET, 1.0)
    microphone = ScenarioMicrophone(scene(*cues), Speakers())
    script = {0.5: lambda: setattr(talk, "idle", False), 5.0: lambda: setattr(talk, "idle", True)}
    frames(microphone, talk, script)
    assert microphone.placed[1].start / SAMPLE_RATE == pytest.approx(6.0, abs=0.05)


def test_rounds_and_background() -> None:
    bed = Background(sound=Sound.WHITE, level_db=-40.0)
    cue = Cue(sound=Sound.SILENCE, seconds=0.4, at=Moment(Anchor.USER_ENDS, 0.1))
    microphone = ScenarioMicrophone(scene(cue, repeat=3, background=(bed,)), Speakers())
    sound = frames(microphone, Talk())
    assert len(microphone.placed) == 3
    assert 20 * np.log10(np.sqrt(np.mean(sound**2))) == pytest.approx(-40, abs=0.5)


def test_what_the_assistant_says_comes_back_through_the_room() -> None:
    room = Room(echo_db=0, delay_ms=100, decay_ms=0)
    cue = Cue(sound=Sound.SILENCE, seconds=2.0, at=Moment(Anchor.BEGINNING, 0.0))
    microphone = ScenarioMicrophone(scene(cue, room=room), Speakers())
    heard = []
    for number, frame in enumerate(microphone.frames(Talk())):
        heard.append(frame)
        microphone.played(np.full(PLAYBACK_FRAME, 0.5 if number == 25 else 0.0, np.float32))
    sound = np.concatenate(heard)
    # Frame 25 is in the air from 0.52 s on.
    assert first_loud(np.where(np.abs(sound) > 0.2, sound, 0)) == pytest.approx(0.62, abs=0.003)
