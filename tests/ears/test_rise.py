"""A sudden sound is noticed sooner than any detector knows a voice, and taken back if it was none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.audio import noise
from assistant.audio.constants import FRAME, samples
from assistant.ears.echo import NOTHING_DB, NoCanceller
from assistant.ears.edges import SpeechEdges
from assistant.ears.rise import LAPSE_FRAMES, SoundFell, SoundRise, SoundRose
from tests.audio.speech import in_room, pause, recording, trimmed


def noticed(pcm: np.ndarray) -> tuple[list[int], list[SoundRose | SoundFell]]:
    """(samples at which anything suspected a voice, what the level said)."""
    edges, rise, canceller = SpeechEdges(), SoundRise(), NoCanceller()
    suspected, rises = [], []
    for at in range(0, len(pcm) - FRAME + 1, FRAME):
        edges.push(canceller.near(pcm[at : at + FRAME]))
        known = edges.last_frame
        assert known is not None
        found = rise.push(canceller.foreign_db, known.end, probability=known.probability, suspected=edges.suspected)
        if found is not None:
            rises.append(found)
        if edges.suspected or isinstance(found, SoundRose):
            suspected.append(known.end)
    return suspected, rises


USERS = ["What time is it?", "Stop.", "Yes.", "How are you?", "Hold on.", "Please tell me a story about the sea."]


@pytest.mark.parametrize("text", USERS)
@pytest.mark.parametrize("offset", [0, 100, 300])
def test_words_are_noticed_within_60_ms(speech, text: str, offset: int) -> None:
    start = samples(1_000) + offset
    suspected, _ = noticed(in_room(np.zeros(start, np.float32), trimmed(speech.user(text)), pause(300)))
    assert 0 <= suspected[0] - start <= samples(60)


@pytest.mark.parametrize("name", ["agent-loginok", "auth-thankyou", "vm-goodbye", "codec2/f2400", "codec2/m2400"])
def test_people_are_noticed_within_60_ms(name: str) -> None:
    start = samples(1_000)
    suspected, _ = noticed(in_room(np.zeros(start, np.float32), trimmed(recording(name)), pause(300)))
    assert 0 <= suspected[0] - start <= samples(60)


@pytest.mark.parametrize("make", [noise.silence, noise.white, noise.pink, noise.hum, noise.office])
def test_what_goes_on_all_the_time_does_not_rise(make) -> None:
    assert noticed(make(10))[1] == []


def test_a_typist_is_mostly_ignored() -> None:
    _, rises = noticed(noise.keyboard(30))
    assert sum(isinstance(rise, SoundRose) for rise in rises) <= 5


def bursts(count: int) -> np.ndarray:
    hiss = noise.white(0.2, -25)
    return np.concatenate([noise.silence(1), *[part for _ in range(count) for part in (hiss, noise.silence(0.3))]])


def test_a_noise_is_taken_back_soon_and_the_next_not_believed_so_soon() -> None:
    rose, fell, *later = noticed(bursts(40))[1]
    assert isinstance(rose, SoundRose) and isinstance(fell, SoundFell)
    assert fell.noticed_at - rose.noticed_at == LAPSE_FRAMES * FRAME
    assert len(later) <= 2 * 4  # 20 s: after 1, 2, 4 and 8 of them


def test_a_noise_that_stays_rises_once() -> None:
    vacuum = np.concatenate([noise.silence(2), noise.pink(8, -25)])
    assert len(noticed(vacuum)[1]) == 2


@given(st.lists(st.tuples(st.sampled_from([NOTHING_DB, -60.0, -40.0, -15.0]), st.booleans()), max_size=150))
def test_every_rise_is_taken_back_or_taken_over(frames: list[tuple[float, bool]]) -> None:
    rise = SoundRise()
    believed = False
    for number, (level, suspected) in enumerate(frames):
        found = rise.push(level, number * FRAME, probability=0.0, suspected=suspected)
        assert isinstance(found, SoundRose) is (found is not None and not believed)
        assert found is None or not suspected
        believed = isinstance(found, SoundRose) or (believed and not suspected and found is None)
