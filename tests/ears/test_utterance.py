"""Decoding a growing utterance: no gap, no doubled word, no decode that grows with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.audio.constants import FRAME, samples
from assistant.ears.errors import EarsSettingsError
from assistant.ears.hypothesis import Hypothesis, Mode
from assistant.ears.utterance import (
    UNHURRIED,
    DecodeJob,
    Transcript,
    UtteranceSettings,
    UtteranceTranscriber,
    mend,
    quietest,
)

START = 5_000
CUT_OFF = "-"


@dataclass(frozen=True)
class Spoken:
    """A word of the imagined speaker."""

    word: str
    start: int
    end: int


@dataclass(frozen=True)
class Talk:
    """Words in time, and the stretches of speech a detector sees."""

    words: tuple[Spoken, ...]
    stretches: tuple[tuple[int, int], ...]
    end: int


def talk(plan: list[list[int]], pauses: list[int]) -> Talk:
    """Stretches of words of so many frames each, pauses of so many frames between the stretches."""
    at = START
    words: list[Spoken] = []
    stretches: list[tuple[int, int]] = []
    for lengths, gap in zip(plan, pauses, strict=False):
        began = at
        for length in lengths:
            words.append(Spoken(f"w{len(words)}", at, at + length * FRAME))
            at += length * FRAME
        stretches.append((began, at))
        at += gap * FRAME
    return Talk(tuple(words), tuple(stretches), at + 60 * FRAME)


def perfect(job: DecodeJob, spoken: Talk) -> Hypothesis:
    """A recogniser without a fault: whole words as they are, words cut off in the middle marked."""
    text = []
    for word in spoken.words:
        inside = min(word.end, job.end) - max(word.start, job.start)
        if inside > 0:
            whole = job.start <= word.start and word.end <= job.end
            text.append(word.word if whole else word.word + CUT_OFF)
    assert tuple(text[: len(job.prefix_words)]) == job.prefix_words
    return Hypothesis(" ".join(text), 0.0, -0.1, False, len(job.pcm) / 16_000, job.mode)


def listen(
    spoken: Talk, rules: UtteranceSettings | None = None, latency: int = 5, notice: int = 5, tell_start: bool = True
) -> tuple[list[Transcript], list[DecodeJob]]:
    """Play a talk to the policy: decodes take `latency` frames, speech is noticed `notice` frames late."""
    counting = np.arange(spoken.end, dtype=np.float32)
    utterance = UtteranceTranscriber(START, counting[START:START], rules)
    jobs: list[tuple[int, DecodeJob]] = []
    made: list[DecodeJob] = []
    shown = [utterance.transcript]
    voice_end, voice_start = START, START
    for at in range(START, spoken.end, FRAME):
        now = at + FRAME
        for began, ended in spoken.stretches:
            # The utterance was opened because the first stretch was noticed; none goes unnoticed.
            late = 0 if began == START else min(notice * FRAME, ended - began - FRAME)
            if began + late <= at < ended:
                voice_end, voice_start = min(now, ended), began
        utterance.push(counting[at:now], voice_end, voice_start if tell_start else None)
        if jobs and at >= jobs[0][0]:
            _, job = jobs.pop(0)
            shown.append(utterance.done(job, perfect(job, spoken)))
        while (new := utterance.next_job()) is not None:
            assert not jobs, "two jobs at once"
            made.append(new)
            assert np.array_equal(new.pcm, counting[new.start : new.end])
            if latency:
                jobs.append((at + latency * FRAME, new))
                break
            shown.append(utterance.done(new, perfect(new, spoken)))
    while (last := utterance.final_job()) is not None:
        made.append(last)
        shown.append(utterance.done(last, perfect(last, spoken)))
    return shown, made


plans = st.lists(st.lists(st.integers(3, 40), min_size=1, max_size=14), min_size=1, max_size=9)
gaps = st.lists(st.integers(1, 50), min_size=9, max_size=9)


@settings(max_examples=120, deadline=None)
@given(plans, gaps, st.integers(0, 30), st.integers(0, 15), st.booleans(), st.sampled_from([None, UNHURRIED]))
def test_every_word_once_whatever_the_pauses(plan, pauses, latency, notice, tell_start, rules):
    spoken = talk(plan, pauses)
    shown, made = listen(spoken, rules, latency, notice, tell_start)
    final = shown[-1]
    assert final.final
    forced = any(job.cut for job in made)
    if not forced:
        assert final.words == tuple(word.word for word in spoken.words)
    # Committed words never change, and no decode is longer than Whisper's window with its margin.
    for before, after in zip(shown, shown[1:], strict=False):
        assert after.committed[: len(before.committed)] == before.committed
    assert max(len(job.pcm) for job in made) <= samples(28_500)
    # A segment begins exactly where sound was cut off before.
    for one, other in zip(made, made[1:], strict=False):
        assert other.segment - one.segment in (0, 1)
        if other.segment == one.segment:
            assert other.start == one.start
        else:
            assert other.start in {job.end for job in made if job.segment == one.segment}


def test_a_long_talk_costs_the_same_at_its_end():
    """Case 6: two minutes with a short pause every four seconds."""
    spoken = talk([[20] * 10] * 28, [15] * 28)
    _, made = listen(spoken)
    early = [len(job.pcm) for job in made if job.end < samples(40_000)]
    late = [len(job.pcm) for job in made if job.end > samples(80_000)]
    assert spoken.end > samples(115_000)
    assert max(late) <= max(early) <= samples(14_000)


def test_without_any_pause_the_quietest_spot_is_cut():
    words = talk([[25] * 100], [0])
    rng = np.random.default_rng(1)
    pcm = (0.2 * rng.standard_normal(words.end)).astype(np.float32)
    for word in words.words:
        pcm[word.end - 2 * FRAME : word.end + FRAME] *= 0.01
    utterance = UtteranceTranscriber(START, pcm[START:START])
    cuts = []
    for at in range(START, words.words[-1].end, FRAME):
        utterance.push(pcm[at : at + FRAME], at + FRAME)
        while (job := utterance.next_job()) is not None:
            assert len(job.pcm) <= samples(24_500)
            if job.cut:
                cuts.append(job.end)
            utterance.done(job, perfect(job, words))
    assert len(cuts) == 2
    boundaries = np.array([word.end for word in words.words])
    assert all(np.abs(boundaries - cut).min() <= 2 * FRAME for cut in cuts)


def test_partials_begin_early_and_carry_the_stable_words():
    shown, made = listen(talk([[10] * 8], [50]))
    partials = [job for job in made if job.mode is Mode.PARTIAL]
    assert partials[0].end - START <= samples(300)
    assert [len(job.prefix_words) for job in partials][-1] >= 3
    assert made[-1].mode is Mode.FINAL
    assert made[-1].prefix_words == ()
    # The last word is open while speech goes on, and sure with the final.
    assert shown[-1].sure == shown[-1].words


def test_the_final_runs_ahead_of_the_endpoint_and_is_not_made_twice():
    spoken = talk([[10] * 5], [60])
    shown, made = listen(spoken, latency=4)
    finals = [job for job in made if job.mode is Mode.FINAL]
    assert len(finals) == 1
    assert finals[0].end - spoken.stretches[0][1] <= samples(60) + 4 * FRAME
    assert shown[-1].final


def test_a_pause_inside_the_sentence_reopens_the_last_word():
    utterance = UtteranceTranscriber(0, np.zeros(0, np.float32))
    for _ in range(20):
        utterance.push(np.zeros(FRAME, np.float32), utterance.end + FRAME)
    for _ in range(3):
        utterance.push(np.zeros(FRAME, np.float32), 20 * FRAME)
    job = utterance.next_job()
    assert job is not None and job.mode is Mode.FINAL
    said = utterance.done(job, Hypothesis("your agent number four.", 0.1, -0.4, False, 0.5, Mode.FINAL))
    assert said.final and said.sure == ("your", "agent", "number", "four.")
    utterance.push(np.zeros(FRAME, np.float32), utterance.end + FRAME)
    assert utterance.transcript.sure == ("your", "agent", "number")
    assert not utterance.transcript.final


def test_results_nobody_wants_any_more_change_nothing():
    utterance = UtteranceTranscriber(0, np.zeros(samples(400), np.float32))
    stale = utterance.next_job()
    assert stale is not None
    wanted = utterance.final_job()
    assert wanted is not None
    nothing = utterance.done(stale, Hypothesis("late", 0.1, -0.4, False, 0.5, Mode.PARTIAL))
    assert nothing.words == ()
    assert utterance.done(wanted, Hypothesis("right", 0.1, -0.4, False, 0.5, Mode.FINAL)).text == "right"
    assert utterance.final_job() is None


def test_a_dropped_job_is_asked_for_again():
    utterance = UtteranceTranscriber(0, np.zeros(samples(400), np.float32))
    job = utterance.next_job()
    assert job is not None and utterance.next_job() is None
    utterance.drop(job)
    assert utterance.next_job() is not None


@pytest.mark.parametrize(
    "heard",
    [
        Hypothesis("and and and and and and", 0.1, -0.3, True, 0.5, Mode.PARTIAL),
        Hypothesis("Thank you.", 0.9, -1.4, False, 0.5, Mode.PARTIAL),
    ],
)
def test_loops_and_inventions_do_not_become_words(heard):
    utterance = UtteranceTranscriber(0, np.zeros(samples(400), np.float32))
    job = utterance.next_job()
    assert job is not None
    assert utterance.done(job, heard).words == ()


def test_the_full_stop_at_a_cut_goes_when_the_sentence_goes_on():
    assert mend(("Nova", "Scotia."), ("and", "Brunswick")) == ("Nova", "Scotia")
    assert mend(("Nova", "Scotia."), ("And", "Brunswick")) == ("Nova", "Scotia.")
    assert mend(("well", "..."), ("and",)) == ("well", "...")
    assert mend((), ("and",)) == ()


@given(st.integers(0, 40), st.integers(1, 100_000))
def test_the_quietest_spot_is_inside(frames, within):
    pcm = np.random.default_rng(frames).standard_normal(frames * FRAME + 7).astype(np.float32)
    assert 0 <= quietest(pcm, within) <= len(pcm)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(EarsSettingsError, match="30 s at most"):
        UtteranceSettings(max_ms=40_000)
