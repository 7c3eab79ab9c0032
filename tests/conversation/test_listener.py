"""The listener's own part: what the gate is told of the words that the recogniser was primed with (case 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assistant.audio.constants import FRAME
from assistant.conversation.listener import Decoded, Heard, Listener
from assistant.ears.edges import SpeechEdges, SpeechEnded
from assistant.ears.evidence import SpeechEvidence
from assistant.ears.gate import Reason
from assistant.ears.hypothesis import Hypothesis, Mode
from assistant.ears.transcriber import AsrSettings, Transcriber

SILENCE = np.zeros(FRAME, np.float32)
CLICK = SpeechEvidence(voiced_ms=100, active_ms=300, probability_sum=120.0, peak=0.6)
VOICE = SpeechEvidence(voiced_ms=900, active_ms=1_000, probability_sum=900.0, peak=0.99, over_floor_db=30)


@pytest.fixture(scope="module")
def plain(whisper_path) -> Transcriber:
    return Transcriber.load(whisper_path)


def understood(transcriber: Transcriber, text: str, evidence: SpeechEvidence) -> Heard:
    """What the listener makes of `text`, spoken with so much evidence."""
    listener = Listener(SpeechEdges(), transcriber)
    listener.open(0)
    for _ in range(40):
        listener.push(SILENCE)
    listener.pause(SpeechEnded(0, 0, evidence))
    job = listener.next_job()
    assert job is not None
    done = job()
    said = Hypothesis(text, no_speech_prob=0.1, avg_logprob=-0.3, looped=False, seconds=0.8, mode=Mode.FINAL)
    heard = listener.receive(Decoded(done.job, done.utterance, said))
    assert heard is not None
    return heard


@pytest.mark.parametrize("text", ["Crosstalk.", "Crosstalk, Ouagadougou."])
def test_hot_words_alone_are_believed_only_with_a_voice(plain: Transcriber, text: str) -> None:
    words = ("Crosstalk", "Ouagadougou")
    primed = Transcriber(plain._model, plain._vocabulary, replace(AsrSettings(), hot_words=words))
    refused = understood(primed, text, CLICK)
    assert not refused.accepted and refused.reason == Reason.INVENTED.value and refused.text == ""
    assert understood(primed, text, VOICE).accepted
    assert understood(primed, "Crosstalk is here.", CLICK).accepted, "words of its own are no invention"
    assert understood(plain, "Crosstalk.", CLICK).accepted, "nobody put the word into its ear"
