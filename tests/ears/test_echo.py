"""Open speakers: the echo of the assistant's own voice is not taken for the user's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.ears.echo import CancellerKind, NoCanceller, WebrtcCanceller, installed, make_canceller
from assistant.ears.edges import SpeechEdges, SpeechStarted
from assistant.ears.own_words import is_echo

AIR = "a rainbow is made by light specifically when sunlight passes through a drop of water".split()


@pytest.mark.parametrize(
    ("heard", "echo"),
    [
        ("made by light specifically", True),
        ("a rainbow is made by light", True),
        ("made bye light specifically when", True),  # one word misheard
        ("light", False),
        ("drop of", False),  # too few to be sure
        ("what is a rainbow", False),
        ("stop it please", False),
        ("a when of water", False),  # the right words from all over the place
    ],
)
def test_words_that_are_in_the_air(heard: str, echo: bool) -> None:
    assert is_echo(heard.split(), AIR) is echo


@given(st.integers(0, 14), st.integers(3, 15))
def test_any_stretch_of_the_answer_is_echo(start: int, size: int) -> None:
    stretch = AIR[start : start + size]
    assert is_echo(stretch, AIR) or len(stretch) < 3


def test_nothing_in_the_air_is_no_echo() -> None:
    assert not is_echo("tell me more please".split(), [])


def test_without_a_canceller_nothing_changes() -> None:
    frame = np.ones(FRAME, np.float32)
    assert NoCanceller().near(frame) is frame
    assert isinstance(make_canceller(CancellerKind.OFF), NoCanceller)


needs_webrtc = pytest.mark.skipif(not installed(), reason="needs the extra 'aec' (livekit)")


def heard_speech(canceller: object, far: np.ndarray, microphone: np.ndarray) -> list[float]:
    """Seconds at which somebody seems to speak."""
    edges, found = SpeechEdges(), []
    for i in range(len(microphone) // FRAME):
        cleaned = canceller.near(microphone[i * FRAME : (i + 1) * FRAME])  # type: ignore[attr-defined]
        for edge in edges.push(np.asarray(cleaned, np.float32)):
            if isinstance(edge, SpeechStarted):
                found.append(edge.at_sample / SAMPLE_RATE)
        canceller.far(far[i * PLAYBACK_FRAME : (i + 1) * PLAYBACK_FRAME])  # type: ignore[attr-defined]
    return found


@pytest.fixture(scope="module")
def answer(piper_path: object) -> np.ndarray:
    """About ten seconds of the assistant, at `PLAYBACK_RATE`."""
    from voices import Voice

    speech = Voice.load(piper_path).synthesize(  # type: ignore[arg-type]
        "A rainbow is made by light, when sunlight passes through a drop of water and is bent on its way in and out, "
        "so that each colour leaves at an angle of its own, and together they make a bow in the sky."
    )
    return resample(speech.pcm, speech.sample_rate, PLAYBACK_RATE)


def echo_of(answer: np.ndarray, delay_ms: float, gain_db: float) -> tuple[np.ndarray, np.ndarray]:
    """(far at 24 kHz, microphone at 16 kHz) in a small room: a delay and a short decaying tail."""
    random = np.random.default_rng(1)
    tail = random.normal(0, 1, SAMPLE_RATE // 5) * np.exp(-np.arange(SAMPLE_RATE // 5) / (0.04 * SAMPLE_RATE)) * 0.1
    tail[0] = 1.0
    near = np.convolve(resample(answer, PLAYBACK_RATE, SAMPLE_RATE), tail)
    near = np.concatenate([np.zeros(round(delay_ms * SAMPLE_RATE / 1000)), near]) * 10 ** (gain_db / 20)
    near = near[: len(near) // FRAME * FRAME].astype(np.float32)
    near += random.normal(0, 3e-4, near.size).astype(np.float32)
    far = np.zeros(near.size // FRAME * PLAYBACK_FRAME, np.float32)
    far[: answer.size] = answer[: far.size]
    return far, near


@needs_webrtc
@pytest.mark.parametrize("delay_ms", [30, 60, 250])
def test_its_own_voice_is_not_speech(answer: np.ndarray, delay_ms: float) -> None:
    far, near = echo_of(answer, delay_ms, -6.0)
    assert heard_speech(NoCanceller(), far, near), "without a canceller the echo is speech: the test can fail"
    assert not heard_speech(WebrtcCanceller(), far, near)


@needs_webrtc
def test_the_user_is_heard_over_the_echo(answer: np.ndarray) -> None:
    from assistant.audio.formats import read_sound
    from tests.replay.conftest import DEMO

    far, near = echo_of(answer, 60, -6.0)
    user = read_sound(DEMO)[round(6.4 * SAMPLE_RATE) : round(8.0 * SAMPLE_RATE)]  # "Tell me how a rainbow is made."
    start = 4 * SAMPLE_RATE
    near[start : start + user.size] += user
    found = heard_speech(WebrtcCanceller(), far, near)
    assert found, "the canceller ate the user"
    assert all(3.9 < moment < 6.0 for moment in found)


@needs_webrtc
def test_headphones_are_left_alone() -> None:
    """Nothing in the air: the microphone comes back bit for bit."""
    canceller = WebrtcCanceller()
    random = np.random.default_rng(2)
    for _ in range(50):
        frame = random.normal(0, 0.1, FRAME).astype(np.float32)
        assert canceller.near(frame) is frame
        canceller.far(np.zeros(PLAYBACK_FRAME, np.float32))


@needs_webrtc
def test_with_headphones_the_user_is_heard_at_once(answer: np.ndarray) -> None:
    """No echo in the microphone: after the first words the canceller steps aside and cannot eat the user's."""
    from assistant.audio.formats import read_sound
    from tests.replay.conftest import DEMO

    far, near = echo_of(answer, 60, -120.0)
    user = read_sound(DEMO)[round(6.4 * SAMPLE_RATE) : round(8.0 * SAMPLE_RATE)]
    start = 3 * SAMPLE_RATE
    near[start : start + user.size] += user
    found = heard_speech(WebrtcCanceller(), far, near)
    assert found == heard_speech(NoCanceller(), far, near)
