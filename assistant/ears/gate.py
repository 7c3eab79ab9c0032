"""Was that really said? Whisper invents speech out of silence and noise; several witnesses together tell.

No single one is enough: a farewell out of office noise had a no-speech probability of 0.21, and a real
"thank you" is word for word what Whisper says to a humming fridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from assistant.ears.evidence import SpeechEvidence
from assistant.ears.hypothesis import NO_SPEECH, UNSURE, Hypothesis, split_words
from assistant.ears.loops import mostly_loops
from assistant.ears.stabiliser import bare


class Reason(StrEnum):
    """Why a text is believed, or not."""

    SPOKEN = "spoken"
    EMPTY = "empty"
    """There is no word in it."""
    NO_VOICE = "no voice"
    """The detector heard no voice to speak of."""
    NO_SPEECH = "no speech"
    """The recogniser itself thinks nobody spoke, or has no confidence at all."""
    REPETITION = "repetition"
    """It goes round in circles."""
    INVENTED = "invented"
    """A phrase Whisper likes to make up, on weak evidence."""
    TOO_MUCH = "too much"
    """More words than the voiced time has room for."""


@dataclass(frozen=True)
class Verdict:
    """Accepted or not, and why."""

    accepted: bool
    reason: Reason


@dataclass(frozen=True)
class GateSettings:
    """Thresholds; probabilities in [0, 1], natural log-probabilities, milliseconds."""

    min_voiced_ms: int = 60
    no_speech: float = NO_SPEECH
    unsure_logprob: float = UNSURE
    """Below this together with a high no-speech probability: nothing was said."""
    hopeless_logprob: float = -1.8
    """Below this a text is not believed whatever else speaks for it."""
    strong_voiced_ms: int = 160
    strong_probability: float = 0.5
    """Mean of the detector over the speech: real short words reach 0.55 and more."""
    max_letters_per_second: float = 34.0
    """Fast speech has 25."""
    grace_ms: int = 200
    """Added to the voiced time before letters are counted against it: edges are soft."""


INVENTIONS = frozenset(
    {
        "you",
        "thank you",
        "thank you so much",
        "thank you very much",
        "thanks",
        "thanks for watching",
        "thank you for watching",
        "thanks for listening",
        "thank you for listening",
        "bye",
        "bye bye",
        "goodbye",
        "the end",
        "beep",
        "oh",
        "so",
        "subscribe",
        "please subscribe",
        "see you next time",
        "see you in the next video",
        "ill see you in the next video",
        "dont forget to subscribe",
        "im going to go to the next one",
        "subtitles by the amaraorg community",
        "transcription by castingwords",
    }
)
"""What Whisper says to silence, hum, keys and chimes, as `phrase` spells it."""


def phrase(text: str) -> str:
    """A text as inventions are looked up: lower case, no punctuation at all."""
    return " ".join(filter(None, (bare(word).replace("'", "") for word in split_words(text))))


def accept(
    heard: Hypothesis,
    evidence: SpeechEvidence,
    settings: GateSettings | None = None,
    hot_words: Sequence[str] = (),
) -> Verdict:
    """Weigh a text against the voice that is said to have spoken it.

    `hot_words` are those the decoder was primed with: alone they count as an invention.
    """
    reason = _reason(heard, evidence, settings or GateSettings(), hot_words)
    return Verdict(reason is Reason.SPOKEN, reason)


def _reason(heard: Hypothesis, evidence: SpeechEvidence, limits: GateSettings, hot: Sequence[str]) -> Reason:
    said = phrase(heard.text)
    if not said:
        return Reason.EMPTY
    if evidence.voiced_ms < limits.min_voiced_ms:
        return Reason.NO_VOICE
    if heard.looped or mostly_loops(heard.words):
        return Reason.REPETITION
    if heard.avg_logprob < limits.hopeless_logprob:
        return Reason.NO_SPEECH
    if heard.no_speech_prob > limits.no_speech and heard.avg_logprob < limits.unsure_logprob:
        return Reason.NO_SPEECH
    strong = (
        evidence.voiced_ms >= limits.strong_voiced_ms
        and evidence.mean_probability >= limits.strong_probability
        and heard.no_speech_prob <= limits.no_speech
    )
    if not strong and _invention(said, hot):
        return Reason.INVENTED
    room = (max(evidence.voiced_ms, evidence.active_ms) + limits.grace_ms) / 1000
    if len(said) > limits.max_letters_per_second * room:
        return Reason.TOO_MUCH
    return Reason.SPOKEN


def _invention(said: str, hot_words: Sequence[str]) -> bool:
    """Made of nothing but inventions and hot words?

    Worked example: "thank you thank you bye" is taken apart from the left, longest phrase first.
    """
    known = INVENTIONS | {phrase(word) for word in hot_words}
    words = said.split()
    longest = max(len(entry.split()) for entry in known)
    at = 0
    while at < len(words):
        for length in range(min(longest, len(words) - at), 0, -1):
            if " ".join(words[at : at + length]) in known:
                at += length
                break
        else:
            return False
    return True
