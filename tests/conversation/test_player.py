"""The player: every sample of an answer is played once, in order, whatever ducks, holds and stops it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.audio.constants import PLAYBACK_FRAME
from assistant.player import DUCKED_GAIN, FADE, Output, Player


def ramp(count: int, start: int = 0) -> np.ndarray:
    """Samples that name their own position."""
    return (np.arange(start, start + count, dtype=np.float32) + 1) / 1e6


def drain(player: Player, limit: int = 400) -> np.ndarray:
    frames = []
    for _ in range(limit):
        played = player.pull()
        frames.append(played.sound.copy())
        if played.ended:
            break
    return np.concatenate(frames)


def test_plays_all_and_says_so() -> None:
    player = Player()
    player.begin()
    player.add(ramp(1000))
    player.add(ramp(300, 1000))
    player.complete()
    first = player.pull()
    assert first.started and not first.ended
    out = np.concatenate([first.sound.copy(), drain(player)])
    np.testing.assert_array_equal(out[:1300], ramp(1300))
    assert not out[1300:].any() and player.position == 1300 and not player.active


def test_an_answer_without_sound_ends_at_once() -> None:
    player = Player()
    player.begin()
    player.complete()
    assert player.pull().ended and not player.active


def test_a_late_clause_is_waited_for() -> None:
    player = Player()
    player.begin()
    player.add(ramp(480))
    player.pull()
    assert player.pull().starved
    player.add(ramp(480, 480))
    player.complete()
    played = player.pull()
    np.testing.assert_array_equal(played.sound, ramp(480, 480))
    assert played.ended


def test_ducked_sound_still_counts() -> None:
    player = Player()
    player.begin()
    player.add(np.ones(480 * 4, np.float32))
    player.pull()
    player.duck()
    player.pull()
    np.testing.assert_allclose(player.pull().sound, DUCKED_GAIN)
    assert player.position == 480 * 3


def test_hold_goes_on_from_the_same_sample() -> None:
    player = Player()
    player.begin()
    player.add(ramp(480 * 6))
    player.complete()
    player.pull()
    player.hold()
    fading = player.pull().sound.copy()
    assert fading[0] > 0 and abs(fading[-1]) < 1e-9
    for _ in range(10):
        assert not player.pull().sound.any()
    assert player.position == 480
    player.resume()
    rising = player.pull().sound.copy()
    assert rising[0] == 0 and np.isclose(rising[-1], ramp(1, 959)[0])
    np.testing.assert_array_equal(player.pull().sound, ramp(480, 960))


def test_stop_fades_within_30_ms_and_counts_what_was_played() -> None:
    player = Player()
    player.begin()
    player.add(np.ones(48_000, np.float32))
    player.pull()
    player.pull()
    assert player.stop() == 960
    fade = player.pull().sound.copy()
    assert FADE <= 720 and fade[0] == 1.0 and fade[FADE - 1] == 0.0
    assert np.all(np.diff(fade[:FADE]) <= 0)
    assert not player.pull().sound.any() and not player.active


def test_stop_while_held_is_silent_at_once() -> None:
    player = Player()
    player.begin()
    player.add(np.ones(4_800, np.float32))
    player.pull()
    player.hold()
    player.pull()
    assert player.stop() == 480
    assert not player.pull().sound.any()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["add", "pull", "duck", "hold", "resume"]), max_size=60), st.integers(1, 1500))
def test_nothing_is_lost_or_doubled(commands: list[str], size: int) -> None:
    player = Player()
    player.begin()
    added = 0
    for command in commands:
        if command == "add":
            player.add(ramp(size, added))
            added += size
        elif command == "pull":
            player.pull()
        else:
            getattr(player, command)()
        assert player.position + player.queued == added
    player.resume()
    player.complete()
    player.pull()
    player.pull()
    position = player.position
    rest = drain(player) if player.active else np.zeros(0, np.float32)
    if rest.size:
        expected = ramp(added, 0)[position:]
        np.testing.assert_array_equal(rest[: expected.size], expected)
    assert player.position == added


def test_a_frame_is_20_ms() -> None:
    assert Player().pull().sound.shape == (PLAYBACK_FRAME,)


def test_what_waits_in_a_buffer_has_not_been_heard() -> None:
    player = Player()
    player.begin()
    player.add(np.ones(48_000, np.float32))
    for _ in range(5):
        player.pull()
    assert player.in_the_air(0) == 2400
    assert player.in_the_air(480) == 1920
    assert player.in_the_air(700) == 1700
    assert player.in_the_air(2400) == player.in_the_air(100_000) == 0


def test_silence_in_a_buffer_is_not_answer() -> None:
    """Worked by hand: three frames pulled, held for two; 1,100 samples behind, 140 of the third frame are unheard."""
    player = Player()
    player.begin()
    player.add(np.ones(48_000, np.float32))
    for _ in range(3):
        player.pull()
    player.hold()
    player.pull()
    player.pull()
    assert player.in_the_air(960) == 1440
    assert player.in_the_air(1100) == 1300


def test_a_stop_empties_the_buffer_instead_of_fading_into_it() -> None:
    dropped: list[int] = []
    player = Player()
    player.begin()
    player.add(np.ones(48_000, np.float32))
    for _ in range(10):
        player.pull()
    assert player.stop(Output(delay=1440, drop=lambda: dropped.append(1))) == 4800 - 1440
    assert dropped == [1] and not player.pull().sound.any()


def test_a_stop_before_the_first_sound_drops_nothing() -> None:
    dropped: list[int] = []
    player = Player()
    player.begin()
    player.add(np.ones(4_800, np.float32))
    assert player.stop(Output(delay=1440, drop=lambda: dropped.append(1))) == 0
    assert not dropped


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["pull", "pull", "hold", "resume"]), max_size=60), st.integers(0, 3000))
def test_heard_is_counted_along_the_frames(commands: list[str], delay: int) -> None:
    """The oracle: mark each sample that comes out with its place in the answer, and look back `delay` samples."""
    player = Player()
    player.begin()
    player.add(np.ones(48_000, np.float32))
    heard = [0]
    for command in commands:
        if command == "pull":
            before = player.position
            player.pull()
            heard += [min(before + i + 1, player.position) for i in range(PLAYBACK_FRAME)]
        else:
            getattr(player, command)()
    assert player.in_the_air(delay) == heard[max(0, len(heard) - 1 - delay)]
