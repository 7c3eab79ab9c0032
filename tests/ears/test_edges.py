"""Speech starts and ends when it does, whatever the detector's delay; noise starts nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.audio import noise
from assistant.audio.constants import FRAME, samples
from assistant.ears.edges import Edge, OnsetLapsed, OnsetLikely, SpeechEdges, SpeechEnded, SpeechStarted
from assistant.ears.errors import EarsSettingsError
from assistant.ears.vad import SpeechDetector, VadKind, VadSettings
from tests.audio.speech import in_room, pause, recording, trimmed

LEAD_MS = 1_000


def edges_of(pcm: np.ndarray, edges: SpeechEdges | None = None) -> list[Edge]:
    edges = edges or SpeechEdges()
    found = [edge for at in range(0, len(pcm) - FRAME + 1, FRAME) for edge in edges.push(pcm[at : at + FRAME])]
    return found + edges.finish()


def of_kind(edges: Sequence[Edge], kind: type) -> list:
    return [edge for edge in edges if isinstance(edge, kind)]


def milliseconds_from(edge: Edge, reference: int) -> float:
    return (edge.at_sample - reference) / 16


QUIET = {
    "zeros": lambda: noise.silence(10),
    "white": lambda: noise.white(10),
    "loud white": lambda: noise.white(10, -20),
    "pink": lambda: noise.pink(10),
    "hum": lambda: noise.hum(10),
    "keyboard": lambda: noise.keyboard(10),
    "office": lambda: noise.office(10),
    "chime": lambda: in_room(pause(500), noise.chime(), pause(500)),
    "cough": lambda: in_room(pause(500), noise.cough(), pause(500)),
    "door": lambda: in_room(pause(500), noise.door(), pause(500)),
    "a noise that begins": lambda: np.concatenate([noise.silence(2), noise.pink(5, -25)]),
}


@pytest.mark.parametrize("name", QUIET)
def test_noise_is_no_speech(name):
    edges = edges_of(QUIET[name]())
    assert not of_kind(edges, SpeechStarted)
    # A suspicion is allowed, for as long as it is taken back.
    assert len(of_kind(edges, OnsetLikely)) == len(of_kind(edges, OnsetLapsed))


USERS = ["What time is it?", "Stop.", "Yes.", "Thank you.", "Please tell me a story about the sea."]


@pytest.mark.parametrize("text", USERS)
@pytest.mark.parametrize("offset", [0, 100, 300])
def test_true_edges_of_synthesised_speech(speech, text, offset):
    said = trimmed(speech.user(text))
    start = samples(LEAD_MS) + offset
    edges = edges_of(in_room(np.zeros(start, np.float32), said, pause(900)))
    started, ended = of_kind(edges, SpeechStarted), of_kind(edges, SpeechEnded)
    likely = of_kind(edges, OnsetLikely)
    assert abs(milliseconds_from(started[0], start)) <= 60
    assert abs(milliseconds_from(ended[-1], start + len(said))) <= 120
    # Early enough to duck, then sure, then over: each soon.
    assert likely[0].noticed_at - start <= samples(60)
    assert started[0].noticed_at - start <= samples(260)
    assert ended[-1].noticed_at - ended[-1].at_sample <= samples(140)
    assert ended[-1].evidence.voiced_ms >= 100


HUMANS = ["agent-loginok", "activated", "auth-thankyou", "vm-goodbye", "conf-muted", "codec2/f2400", "codec2/m2400"]


@pytest.mark.parametrize("name", HUMANS)
def test_true_edges_of_people(name):
    said = trimmed(recording(name))
    start = samples(LEAD_MS)
    edges = edges_of(in_room(np.zeros(start, np.float32), said, pause(900)))
    assert abs(milliseconds_from(of_kind(edges, SpeechStarted)[0], start)) <= 60
    assert of_kind(edges, OnsetLikely)[0].noticed_at - start <= samples(60)
    assert of_kind(edges, SpeechStarted)[0].noticed_at - start <= samples(300)


def test_speech_in_a_noisy_room_is_one_stretch(speech):
    said = trimmed(speech.user("What is the capital of France and how many people live there?"))
    edges = edges_of(in_room(pause(LEAD_MS), said, pause(900), room_db=-42))
    assert 1 <= len(of_kind(edges, SpeechStarted)) <= 2
    assert abs(milliseconds_from(of_kind(edges, SpeechStarted)[0], samples(LEAD_MS))) <= 60


def test_typing_after_a_sentence_does_not_keep_it_open(speech):
    """Case 11: a sentence, then 20 s of typing."""
    said = trimmed(speech.user("What is the capital of France?"))
    edges = edges_of(in_room(pause(500), said, noise.keyboard(20)))
    assert of_kind(edges, SpeechEnded)[-1].noticed_at - samples(500) - len(said) <= samples(500)


def test_silence_and_last_voice_tell_the_present(speech):
    said = trimmed(speech.user("Yes."))
    pcm = in_room(pause(500), said, pause(500))
    edges = SpeechEdges(VadSettings(min_silence_ms=300, min_quiet_ms=300))
    end = samples(500) + len(said)
    for at in range(0, len(pcm) - FRAME, FRAME):
        edges.push(pcm[at : at + FRAME])
        if edges.in_speech and at + FRAME >= end + samples(150):
            assert edges.silence_ms >= 60
            assert abs(edges.last_voice - end) <= samples(90)
            assert abs(edges.voice_start - samples(500)) <= samples(60)
            break
    else:
        pytest.fail("the speech was over before its silence was long enough")


class Scripted:
    """A detector that says what it is told, chunk by chunk."""

    chunk = FRAME

    def __init__(self, script: Sequence[float]) -> None:
        self._script = list(script)
        self._at = 0

    def probability(self, chunk: np.ndarray) -> float:
        self._at += 1
        return self._script[self._at - 1] if self._at <= len(self._script) else 0.0

    def reset(self) -> None:
        self._at = 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.05, 0.2, 0.3, 0.4, 0.6, 0.95]), max_size=120),
    st.lists(st.sampled_from([0.0, 0.0005, 0.02, 0.3]), max_size=120),
    st.integers(0, 10**9),
)
def test_edges_of_anything_are_in_order(script, levels, first):
    count = max(len(script), len(levels))
    tone = np.sin(np.arange(FRAME) * 0.3).astype(np.float32)
    edges = SpeechEdges(detector=SpeechDetector(model=Scripted(script)))
    edges.reset(first)
    found: list[Edge] = []
    for at in range(count):
        found += edges.push(tone * (levels[at] if at < len(levels) else 0.0))
        assert edges.in_speech == (bool(found) and isinstance(found[-1], SpeechStarted))
    found += edges.finish()
    end = first + count * FRAME
    grammar: dict[type | None, set[type]] = {
        None: {OnsetLikely},
        OnsetLikely: {OnsetLapsed, SpeechStarted},
        OnsetLapsed: {OnsetLikely},
        SpeechStarted: {SpeechEnded},
        SpeechEnded: {OnsetLikely},
    }
    before: type | None = None
    sure = noticed = first
    for edge in found:
        assert type(edge) in grammar[before]
        assert first <= edge.at_sample <= edge.noticed_at <= end
        assert edge.noticed_at >= noticed
        noticed, before = edge.noticed_at, type(edge)
        if isinstance(edge, SpeechStarted | SpeechEnded):
            assert edge.at_sample >= sure
            sure = edge.at_sample
    assert before in (None, OnsetLapsed, SpeechEnded)


def test_webrtc_can_be_chosen(speech):
    said = trimmed(speech.user("What is the capital of France?"))
    start = samples(LEAD_MS)
    edges = edges_of(
        in_room(np.zeros(start, np.float32), said, pause(900)), SpeechEdges(VadSettings(kind=VadKind.WEBRTC))
    )
    assert abs(milliseconds_from(of_kind(edges, SpeechStarted)[0], start)) <= 80
    assert len(of_kind(edges, SpeechStarted)) == len(of_kind(edges, SpeechEnded)) <= 3


def test_a_stream_can_begin_again(speech):
    pcm = in_room(pause(300), speech.user("Hello there."), pause(500))
    edges = SpeechEdges()
    first = edges_of(pcm, edges)
    edges.reset(1_000_000)
    second = edges_of(pcm, edges)
    assert [type(edge) for edge in first] == [type(edge) for edge in second]
    assert all(b.at_sample - a.at_sample == 1_000_000 for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("bad", [{"onset": 0.3, "offset": 0.5}, {"offset": 0.0}, {"min_silence_ms": 0}])
def test_settings_that_cannot_work_are_refused(bad):
    with pytest.raises(EarsSettingsError):
        VadSettings(**bad)


def test_a_frame_of_another_size_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="a frame is 320 samples"):
        SpeechDetector().process(np.zeros(160, np.float32))


class Decaying:
    """A detector that is sure during the voice and takes its time to let go."""

    chunk = FRAME
    _last = 0.0

    def probability(self, chunk: np.ndarray) -> float:
        loud = float(np.abs(chunk).max()) > 0.01
        self._last = 0.95 if loud else max(0.0, self._last - 0.1 if self._last > 0.5 else self._last * 0.93)
        return self._last

    def reset(self) -> None:
        self._last = 0.0


def test_the_detectors_afterglow_is_no_new_onset():
    voice = (0.3 * np.sin(2 * np.pi * 200 * np.arange(samples(1_000)) / 16_000)).astype(np.float32)
    sound = np.concatenate([noise.pink(1, -66), voice + noise.pink(1, -66, 1), noise.pink(2, -66, 2)])
    edges = edges_of(sound, SpeechEdges(detector=SpeechDetector(model=Decaying())))
    assert [type(edge) for edge in edges] == [OnsetLikely, SpeechStarted, SpeechEnded]
