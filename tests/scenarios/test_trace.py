"""An answer is followed through the output of the real player, whatever became of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.audio.constants import PLAYBACK_FRAME, PLAYBACK_RATE
from assistant.player import DUCKED_GAIN, Player
from assistant.scenarios.sound import AIR, first_sound, silent_from, sounding, spans
from assistant.scenarios.trace import Tape, Trace, originals, trace
from voices import SpeechPiece, WordTiming


def speech_like(seconds: float, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * PLAYBACK_RATE)) / PLAYBACK_RATE
    rough = np.convolve(random.standard_normal(t.size), np.ones(8) / 8, "same")
    loud = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * t)
    return (0.2 * rough * loud).astype(np.float32)


def played(sound: np.ndarray, script: dict[int, str], frames: int) -> np.ndarray:
    """Frames of the player; `script`: what is called before which frame."""
    player = Player()
    player.begin()
    player.add(sound)
    player.complete()
    out = []
    for number in range(frames):
        if number in script:
            getattr(player, script[number])()
        out.append(player.pull().sound.copy())
    return np.stack(out)


def follow(sound: np.ndarray, script: dict[int, str], frames: int = 120) -> Trace:
    return trace(played(sound, script, frames), 0, frames, sound)


def test_undisturbed() -> None:
    found = follow(speech_like(1.0), {})
    assert found.whole and found.played == PLAYBACK_RATE and found.silences() == []
    assert found.quieter_from(0.0) is None


def test_ducked_and_back() -> None:
    found = follow(speech_like(1.5), {20: "duck", 30: "resume"})
    assert found.whole
    low = found.quieter_from(0.3)
    assert low is not None and 20 * 0.02 + AIR <= low <= 21 * 0.02 + AIR
    levels = [piece.gain_after for piece in found.pieces]
    assert levels[25] == pytest.approx(DUCKED_GAIN, abs=0.02) and levels[-1] == pytest.approx(1.0, abs=0.02)


def test_held_and_resumed_from_the_same_sample() -> None:
    found = follow(speech_like(1.5), {20: "hold", 50: "resume"})
    assert found.whole and found.jumps == ()
    (start, end), = found.silences()
    assert start == pytest.approx(20 * 0.02 + AIR, abs=0.021) and end == pytest.approx(50 * 0.02 + AIR, abs=0.021)


@pytest.mark.parametrize("before", [{}, {18: "duck"}, {15: "hold"}])
def test_stopped_counts_what_was_in_the_air(before: dict[int, str]) -> None:
    player = Player()
    player.begin()
    sound = speech_like(2.0)
    player.add(sound)
    out = []
    for number in range(20):
        if number in before:
            getattr(player, before[number])()
        out.append(player.pull().sound.copy())
    heard = player.stop()
    out += [player.pull().sound.copy() for _ in range(10)]
    found = trace(np.stack(out), 0, len(out), sound)
    assert found.played == heard and not found.whole and found.jumps == ()


def test_starvation_is_no_fault() -> None:
    player = Player()
    player.begin()
    sound = speech_like(1.0)
    out = []
    player.add(sound[:10_100])
    for number in range(70):
        if number == 40:
            player.add(sound[10_100:])
            player.complete()
        out.append(player.pull().sound.copy())
    found = trace(np.stack(out), 0, 70, sound)
    assert found.whole and found.jumps == ()


@pytest.mark.parametrize("moved", [2_400, -2_400])
def test_a_jump_is_found_and_measured(moved: int) -> None:
    sound = speech_like(2.0)
    at = 20 * PLAYBACK_FRAME
    wrong = np.concatenate([sound[:at], sound[at + moved :]])
    wrong = wrong[: wrong.size // PLAYBACK_FRAME * PLAYBACK_FRAME].reshape(-1, PLAYBACK_FRAME)
    found = trace(wrong, 0, len(wrong), sound)
    assert found.jumps == (moved,) and not found.whole


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(3, 60), st.sampled_from(["duck", "hold", "resume"]), max_size=6))
def test_whatever_the_player_is_told_nothing_jumps(script: dict[int, str]) -> None:
    script = {**script, 70: "resume"}
    found = follow(speech_like(1.6), script, 200)
    assert found.whole, (found.jumps, found.played, found.length)


def test_spans_and_silence() -> None:
    quiet = np.zeros(PLAYBACK_RATE, np.float32)
    sound = np.concatenate([quiet, speech_like(1.0), quiet, speech_like(0.5), quiet])
    found = spans(sound)
    assert [round(value, 2) for span in found for value in span] == [1.02, 2.02, 3.02, 3.52]
    assert first_sound(found, 1.5) == pytest.approx(3.02, abs=0.011)
    assert sounding(found, 1.5) and not sounding(found, 2.5)
    assert silent_from(sound, 1.2) == pytest.approx(2.02, abs=0.011)
    assert silent_from(sound[: 2 * PLAYBACK_RATE], 1.2) is None


class Reader:
    """A voice that reads numbers aloud."""

    sample_rate = PLAYBACK_RATE

    def stream(self, text: str, **how: object):
        for index, word in enumerate(text.split()):
            start = text.index(word)
            timing = WordTiming(start, start + len(word), index * 12_000, (index + 1) * 12_000)
            yield SpeechPiece(speech_like(0.5, index), index * 12_000, (timing,))


def test_the_tape_knows_the_words() -> None:
    tape = Tape(Reader())
    next(iter(tape.stream("one two three")))  # a draft that was dropped after its first word
    for text in ("one two three", "four five"):
        list(tape.stream(text))
    (made,) = originals(("one two three", "four five"), tape.takes)
    assert made.sound.size == 60_000
    assert [made.words_in(samples) for samples in (0, 5_999, 6_000, 36_000, 43_000, 60_000)] == [0, 0, 1, 3, 4, 5]
    assert originals(("never said",), tape.takes) == []
    assert originals(("one two three", "never said"), tape.takes)[0].sound.size == 36_000


class Singer(Reader):
    """Lets the voice fall at an end: another sound for the same words."""

    def stream(self, text: str, **how: object):
        continues = bool(how.get("continues"))
        yield SpeechPiece(speech_like(0.5, len(text) + 100 * continues), 0, ())


def test_of_two_ways_to_say_a_clause_the_one_that_was_played_is_found() -> None:
    tape = Tape(Singer())
    list(tape.stream("as said before"))
    for text, continues in (("first", True), ("as said before", True), ("never heard", False)):
        list(tape.stream(text, continues=continues))
    heard = np.concatenate([speech_like(0.5, 105), speech_like(0.5, 114)])
    made = originals(("first", "as said before"), tape.takes)
    found = [trace(played(heard, {}, 60), 0, 60, one.sound) for one in made]
    best = max(found, key=lambda one: one.likeness)
    assert len(found) == 2 and best.whole and best.likeness > min(one.likeness for one in found)
