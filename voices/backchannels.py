"""The small sounds of a listener: "mm-hm", "right", spoken softly and made once.

They never enter the conversation's history; they only tell the speaker that somebody listens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voices.piper import Voice

_SOUNDS = {
    "en": ("mm-hm", "uh-huh", "right", "I see", "yeah", "okay"),
    "de": ("mhm", "ja", "genau", "verstehe"),
    "fr": ("mm", "oui", "d'accord", "je vois"),
    "es": ("ajá", "sí", "claro", "ya veo"),
    "it": ("mh-mh", "sì", "certo", "capisco"),
    "nl": ("mm-hm", "ja", "precies"),
    "pt": ("uhum", "sim", "claro", "entendo"),
}
_WORDLESS = frozenset({"mm-hm", "uh-huh", "mhm", "mm", "mh-mh", "uhum", "ajá"})

_LOUDNESS = 0.09  # of speech at its usual volume, root mean square


@dataclass(frozen=True)
class Backchannel:
    """A ready sound; `pcm` is float32 mono at `sample_rate`."""

    text: str
    pcm: NDArray[np.float32]
    sample_rate: int


def backchannels(
    voice: Voice, texts: tuple[str, ...] | None = None, *, volume: float = 0.35, speed: float = 1.0, seed: int = 0
) -> tuple[Backchannel, ...]:
    """Speak the backchannels of the voice's language (or `texts`) at `volume` of the usual loudness.

    Wordless ones are drawn out, words said quickly and level; each fades in and out so that it does not startle.
    """
    made = []
    for text in texts if texts is not None else _SOUNDS.get(voice.language, _SOUNDS["en"]):
        slow = 0.7 if text in _WORDLESS else 1.1
        speech = voice.synthesize(f"{text}.", speed=speed * slow, variation=0.6, seed=seed)
        if len(speech.pcm):
            sound_end = speech.words[-1].sound_end + speech.sample_rate // 20
            made.append(
                Backchannel(text, _soft(speech.pcm[:sound_end], speech.sample_rate, volume), speech.sample_rate)
            )
    return tuple(made)


def _soft(pcm: NDArray[np.float32], rate: int, volume: float) -> NDArray[np.float32]:
    loudness = float(np.sqrt(np.mean(pcm**2))) or 1.0
    soft = (pcm * (volume * _LOUDNESS / loudness)).astype(np.float32)
    ramp = min(len(soft) // 2, rate * 15 // 1000)
    rise = np.sin(np.linspace(0.0, np.pi / 2, ramp, dtype=np.float32)) ** 2
    soft[:ramp] *= rise
    soft[len(soft) - ramp :] *= rise[::-1]
    return soft
