"""Faults other assistants were reported for, as sound (numbers as in the table of cases)."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.audio import noise
from assistant.audio.constants import samples
from assistant.ears.edges import SpeechEdges
from assistant.ears.evidence import SpeechEvidence
from assistant.ears.gate import Reason, accept
from assistant.ears.hypothesis import Mode
from assistant.ears.stabiliser import bare
from assistant.ears.transcriber import AsrSettings, Transcriber
from assistant.ears.vad import VadKind, VadSettings
from tests.audio.speech import in_room, pause, recording, trimmed
from tests.ears.listening import accepted, listen

NOTHING = {
    "zeros": lambda: noise.silence(10),
    "white": lambda: noise.white(10),
    "pink": lambda: noise.pink(10),
    "hum": lambda: noise.hum(10),
    "keyboard": lambda: noise.keyboard(10),
    "chime": lambda: in_room(pause(1000), noise.chime(), pause(1000), noise.chime(), pause(1000)),
    "office": lambda: noise.office(10),
    "coughs": lambda: in_room(*(part for seed in range(5) for part in (pause(800), noise.cough(seed=seed)))),
    "doors": lambda: in_room(*(part for seed in range(3) for part in (pause(800), noise.door(seed=seed)))),
}


@pytest.mark.parametrize("name", NOTHING)
def test_1_noise_makes_no_turn(transcriber, name):
    assert listen(NOTHING[name](), transcriber) == []


@pytest.mark.parametrize("name", NOTHING)
def test_1_noise_that_fools_the_detector_makes_no_turn_either(transcriber, name):
    """webrtcvad takes most of these for speech: the gate has to know better."""
    credulous = SpeechEdges(VadSettings(kind=VadKind.WEBRTC))
    assert accepted(listen(NOTHING[name]()[: samples(4_000)], transcriber, edges=credulous)) == []


@pytest.mark.parametrize("name", NOTHING)
def test_1_even_if_the_detector_were_fooled_for_a_moment(transcriber, name):
    """The gate alone, told of 100 ms of doubtful voice."""
    heard = transcriber.transcribe(NOTHING[name]()[: samples(6_000)])
    fooled = SpeechEvidence(voiced_ms=100, active_ms=400, probability_sum=160.0, peak=0.6, over_floor_db=20)
    assert not accept(heard, fooled).accepted


LOOPING = [
    "You have been kicked from this conference.",
    "Press one to call this number.",
    "The number is not answering.",
    "Your greeting has been removed.",
]
ALL_EVIDENCE = SpeechEvidence(voiced_ms=2_000, active_ms=2_200, probability_sum=1_900.0, peak=0.99, over_floor_db=40)


@pytest.mark.parametrize("text", LOOPING)
def test_3_a_phrase_repeated_with_confidence_is_rejected(whisper_path, transcriber, speech, text):
    """A careless window makes Whisper go round in circles, sure of itself and over a real voice."""
    said = in_room(pause(300), speech.user(text), pause(60))
    careless = AsrSettings(partial_window=1.0, margin=0.3, tokens_per_second=40.0, spare_tokens=60)
    heard = Transcriber.load(whisper_path, careless)._decode(said, Mode.PARTIAL, (), None)
    assert len(heard.words) > 2 * len(text.split()), "this sound is here because it loops"
    assert heard.avg_logprob > -0.6
    assert accept(heard, ALL_EVIDENCE).reason is Reason.REPETITION
    # With the safeguards the same sound is what was said.
    heard = transcriber.transcribe(said)
    assert not heard.looped
    assert len(heard.words) <= len(text.split()) + 1
    assert accept(heard, ALL_EVIDENCE).accepted


def test_4_hot_words_and_silence(whisper_path):
    hot = Transcriber.load(whisper_path, AsrSettings(hot_words=("Crosstalk", "Piper", "Ouagadougou")))
    silent = noise.silence(5)
    assert listen(silent, hot) == []
    doubtful = SpeechEvidence(voiced_ms=100, active_ms=300, probability_sum=120.0, peak=0.6)
    heard = hot.transcribe(silent)
    assert not accept(heard, doubtful, hot_words=hot.settings.hot_words).accepted


@pytest.mark.slow
def test_6_a_monologue_of_two_minutes(transcriber):
    """Real speech of 112 s: the last partials look at no more sound than the first, and little is lost."""
    pcm = in_room(pause(500), recording("codec2/ve9qrp"), pause(300), room_db=-66)
    (talk,) = listen(pcm, transcriber, endpoint_ms=10_000)
    partials = [job for job in talk.jobs if job.mode is Mode.PARTIAL]
    half = len(pcm) // 2
    early = max(len(job.pcm) for job in partials if job.end < half)
    late = max(len(job.pcm) for job in partials if job.end >= half)
    assert late <= samples(16_000)
    assert late <= early * 1.5
    text = " ".join(talk.words)
    for wanted in (
        "victor echo",
        "new brunswick",
        "international airport",
        "weather here",
        "leaves are slowly",
        "five watts",
        "go ahead",
    ):
        assert wanted in text
    for before, after in zip(talk.shown, talk.shown[1:], strict=False):
        assert tuple(map(bare, after.committed[: len(before.committed)])) == tuple(map(bare, before.committed))


FIRST_WORDS = ["Play some music.", "Hello there.", "Find my keys, please.", "Shall we go home?", "Open the window."]


@pytest.mark.parametrize("text", FIRST_WORDS)
def test_8_the_first_word_is_there(transcriber, speech, text):
    said = trimmed(speech.user(text), 0.001)
    for quiet in (100, 5_000):
        (utterance,) = listen(in_room(pause(quiet), said, pause(900)), transcriber)
        assert utterance.words[0] == bare(text.split()[0])


def test_8_speech_from_the_very_first_sample(transcriber, speech):
    said = trimmed(speech.user("What is the capital of France?"), 0.001)
    (utterance,) = listen(in_room(said, pause(900)), transcriber)
    assert utterance.words == "what is the capital of france".split()


SHORT = [("Stop.", 1.0), ("Stop.", 1.25), ("Yes.", 1.0), ("Yes.", 1.25), ("No.", 1.0), ("Wait!", 1.0)]


@pytest.mark.parametrize(("text", "speed"), SHORT)
def test_10_one_short_word(transcriber, speech, text, speed):
    said = trimmed(speech.user(text, speed=speed))
    assert samples(100) < len(said) < samples(450)
    (utterance,) = listen(in_room(pause(1_000), said, pause(900)), transcriber)
    assert utterance.verdict.accepted
    assert utterance.words == [bare(text)]
    # The word is there well before the endpoint, for whoever must stop at once.
    known = min(job.end for job, shown in zip(utterance.jobs, utterance.shown, strict=True) if shown.words)
    assert known - samples(1_000) - len(said) <= samples(200)


@pytest.mark.parametrize("source", ["user", "espeak", "recording"])
def test_a_real_thank_you_passes(transcriber, speech, source):
    said = {
        "user": lambda: speech.user("Thank you."),
        "espeak": lambda: speech.espeak("Thank you."),
        "recording": lambda: recording("auth-thankyou"),
    }[source]()
    assert len(accepted(listen(in_room(pause(700), trimmed(said), pause(900)), transcriber))) == 1


def test_11_a_sentence_then_typing(transcriber, speech):
    said = trimmed(speech.user("What is the capital of France?"))
    pcm = in_room(pause(500), said, noise.keyboard(20))
    utterance, *others = listen(pcm, transcriber, endpoint_ms=600)
    assert utterance.words == "what is the capital of france".split()
    assert utterance.ended_after - samples(500) - len(said) <= samples(1_000)
    assert accepted(others) == []


def test_12_digits_with_gaps_are_one_utterance_of_all_digits(transcriber):
    digits = [trimmed(recording(f"digits/{n}")) for n in (3, 1, 4, 5, 9)]
    parts = [part for digit in digits for part in (digit, pause(800))]
    (utterance,) = listen(in_room(pause(600), *parts, pause(1_500)), transcriber, endpoint_ms=1_400)
    spoken = {"three": "3", "one": "1", "four": "4", "five": "5", "nine": "9"}
    assert "".join(spoken.get(word, word) for word in utterance.words).replace("-", "") == "31459"


def test_an_utterance_in_noise(transcriber, speech):
    said = trimmed(speech.user("What is the capital of France?"))
    pcm = in_room(pause(1_000), said, pause(900)) + noise.pink(20, -45)[: samples(1_900) + len(said)]
    (text,) = accepted(listen(pcm.astype(np.float32), transcriber))
    assert "capital of France" in text
