"""What was really said passes; what Whisper made up does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.ears.evidence import SpeechEvidence
from assistant.ears.gate import Reason, accept
from assistant.ears.hypothesis import Hypothesis, Mode


def heard(text: str, no_speech: float, logprob: float, *, looped: bool = False) -> Hypothesis:
    return Hypothesis(text, no_speech, logprob, looped, 2.0, Mode.FINAL)


def voice(milliseconds: int, probability: float = 0.75) -> SpeechEvidence:
    return SpeechEvidence(milliseconds, milliseconds, probability * milliseconds, 0.95, 30.0)


NOBODY = SpeechEvidence()
CLICK = SpeechEvidence(60, 300, 60.0, 0.55, 20.0)
"""A sound that crossed the detector's threshold for a moment."""

# Texts and figures as measured on the sounds named, with tiny.en.
TABLE = [
    ("thank you, spoken", heard("Thank you.", 0.07, -0.58), voice(640, 0.71), Reason.SPOKEN),
    ("thank you, quickly", heard("Thank you", 0.30, -0.80), voice(380, 0.82), Reason.SPOKEN),
    ("stop, 300 ms", heard("Stop.", 0.20, -0.90), voice(220, 0.58), Reason.SPOKEN),
    ("yes, 280 ms", heard("Yes.", 0.15, -0.60), voice(320, 0.76), Reason.SPOKEN),
    ("wait, 135 ms", heard("Wait.", 0.25, -0.95), voice(180, 0.69), Reason.SPOKEN),
    ("a sentence", heard("What is the capital of France?", 0.02, -0.25), voice(1800, 0.9), Reason.SPOKEN),
    ("zeros", heard("you", 0.99, -0.57), NOBODY, Reason.NO_VOICE),
    ("a click", heard("you", 0.95, -0.60), CLICK, Reason.INVENTED),
    ("white noise", heard("I'm going to go to the next one.", 0.86, -1.65), voice(400, 0.6), Reason.NO_SPEECH),
    ("office", heard("Thank you.", 0.62, -0.50), voice(500, 0.6), Reason.INVENTED),
    ("a farewell at 0.21", heard("Thank you for watching! Bye bye.", 0.21, -0.5), CLICK, Reason.INVENTED),
    ("a door", heard("Thank you.", 0.39, -1.08), CLICK, Reason.INVENTED),
    ("a chime", heard("Beep!", 0.38, -1.12), voice(100, 0.4), Reason.INVENTED),
    ("a loop", heard("and then and then and then and then", 0.1, -0.2), voice(1500), Reason.REPETITION),
    ("the token limit", heard("la li lu le lo", 0.1, -0.2, looped=True), voice(1500), Reason.REPETITION),
    ("nothing", heard("", 0.3, -0.3), voice(500), Reason.EMPTY),
    ("dots", heard("...", 0.3, -0.3), voice(500), Reason.EMPTY),
    ("no confidence", heard("Wanda forest gull", 0.2, -2.1), voice(500), Reason.NO_SPEECH),
    ("a story in a cough", heard("So we come to the end of our long story", 0.3, -0.4), voice(120), Reason.TOO_MUCH),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "evidence", "reason"), TABLE, ids=[row[0] for row in TABLE])
def test_table(what, text, evidence, reason):
    verdict = accept(text, evidence)
    assert verdict.reason is reason
    assert verdict.accepted is (reason is Reason.SPOKEN)


def test_hot_words_alone_are_no_evidence_of_themselves():
    invented = heard("Crosstalk, Ouagadougou.", 0.3, -0.5)
    assert accept(invented, CLICK, hot_words=("Ouagadougou", "Crosstalk")).reason is Reason.INVENTED
    assert accept(invented, voice(1200), hot_words=("Ouagadougou", "Crosstalk")).accepted


texts = st.sampled_from(["Thank you.", "you", "Open the window", "Bye.", "yes"])
parts = st.floats(0, 1, allow_nan=False)


@given(texts, parts, st.floats(-3, 0), st.integers(0, 2000), parts)
def test_without_a_voice_nothing_passes_and_more_doubt_never_helps(text, no_speech, logprob, voiced, probability):
    evidence = voice(voiced, probability)
    assert not accept(heard(text, no_speech, logprob), NOBODY).accepted
    if not accept(heard(text, no_speech, logprob), evidence).accepted:
        assert not accept(heard(text, min(1.0, no_speech + 0.2), logprob - 0.3), evidence).accepted
        assert not accept(heard(text, no_speech, logprob), voice(voiced // 2, probability / 2)).accepted
