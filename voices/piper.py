"""A Piper voice: a clause of the model's own text in, sound with word timing out.

    voice = Voice.load(path)
    speech = voice.synthesize("**Dr. Sharma** paid $3.50.")
    speech.pcm, speech.sample_rate, speech.words        # float32 in [-1, 1]; see voices.timing
    speech.heard_chars(played_samples)

    for piece in voice.stream(text): ...                # the same sound, the first 0.4 s long before the rest

The clause is made speakable here, and sentence by sentence (as the phonemiser sees them) put through the model.
One thread, no spinning: beside a recogniser and a language model on two cores, a second thread makes it slower.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voices.alignment import word_starts
from voices.errors import VoiceError
from voices.model import PiperModel, Utterance
from voices.silence import Pauses, Trimmer
from voices.speakable import SpokenText, SpokenWord, speakable
from voices.timing import WordTiming, heard_chars

_MARKS = frozenset(",.;:!? ")
# What the phonemiser would spell: interjections, and the letter A (it reads a lone one as the article).
_RESPELLED = {
    "A.": "eigh",
    "hm": "hmm",
    "hmmm": "hmm",
    "mm": "hmm",
    "mmm": "hmm",
    "mhm": "[[mhˈʌm]]",
    "mm-hm": "[[mhˈʌm]]",
    "mm-hmm": "[[mhˈʌm]]",
    "mmhmm": "[[mhˈʌm]]",
    "shh": "[[ʃˈː]]",
    "psst": "[[pst]]",
    "pfft": "[[pft]]",
}
_GAIN = 1.35  # the model's peaks reach 0.7; its loudness is steady, so no clause is levelled by itself


@dataclass(frozen=True)
class Speech:
    """Sound of one clause. `pcm` is float32 mono in [-1, 1], empty where nothing can be said.

    The `words` cover `pcm` without a gap; letters are offsets in the clause's own text.
    """

    pcm: NDArray[np.float32]
    sample_rate: int
    words: tuple[WordTiming, ...]
    text: str

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.sample_rate

    def heard_chars(self, played_samples: int) -> int:
        """Letters of `text` heard after so many samples; all of them at the end (silent ones included)."""
        if self.words and played_samples >= self.words[-1].sound_end:
            return len(self.text)
        return heard_chars(self.words, played_samples)


@dataclass(frozen=True)
class SpeechPiece:
    """A stretch of a clause's sound: `pcm` begins at sample `start` of the clause.

    `words` are those that begin in this stretch, in samples of the clause. The last word's `end_sample` may lie
    beyond the clause's last sample, because trailing silence is cut off later; its `quiet_sample` is right.
    """

    pcm: NDArray[np.float32]
    start: int
    words: tuple[WordTiming, ...]


@dataclass(frozen=True)
class _Sentence:
    phonemes: list[str]
    words: list[SpokenWord]
    starts: list[int]  # the phoneme at which each word begins


class Voice:
    """A loaded voice. Calls may come from any thread."""

    def __init__(self, model: PiperModel, config: Any, pauses: Pauses) -> None:
        """Use `Voice.load`. `config` is Piper's own description of the voice."""
        from piper import PiperVoice

        self._model = model
        # Only its phonemiser is used, which needs no session.
        self._piper = PiperVoice(session=None, config=config)  # type: ignore[arg-type]
        self._pauses = pauses
        self._alone = lru_cache(maxsize=4096)(self._sounds_of)
        self.sample_rate: int = config.sample_rate
        self.language: str = str(config.espeak_voice or "en").split("-")[0].split("_")[0] or "en"

    @classmethod
    def load(
        cls, path: str | Path, config_path: str | Path | None = None, *, threads: int = 1, pauses: Pauses | None = None
    ) -> Voice:
        """Load an .onnx voice with its .onnx.json beside it (or at `config_path`) and speak a word in silence.

        Raises VoiceError when a file is missing or is not a voice.
        """
        from piper.config import PiperConfig

        model_path = Path(path)
        settings_path = Path(config_path) if config_path else Path(f"{model_path}.json")
        for needed in (model_path, settings_path):
            if not needed.is_file():
                raise VoiceError(f"there is no voice at {needed}; pull it with `crosstalk models pull`")
        try:
            config = PiperConfig.from_dict(json.loads(settings_path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise VoiceError(f"{settings_path} does not describe a Piper voice; pull the voice again") from error
        voice = cls(PiperModel(model_path, config, threads), config, pauses or Pauses())
        voice.synthesize("Yes.")
        _give_back_memory()
        return voice

    def speakable(self, text: str, *, continues: bool = False, name_emoji: bool = False) -> SpokenText:
        """What this voice will say for a clause."""
        return speakable(text, self.language, continues=continues, name_emoji=name_emoji)

    def synthesize(
        self,
        text: str,
        *,
        speed: float = 1.0,
        continues: bool = False,
        variation: float = 1.0,
        seed: int = 0,
        name_emoji: bool = False,
    ) -> Speech:
        """Speak a clause of the model's own text.

        `speed` 1.0 is the voice's own, 2.0 twice as fast. `continues`: the sentence goes on in the next clause.
        `variation` scales the liveliness, 0 is monotonous. The same arguments give the same samples.
        """
        pieces = list(
            self.stream(
                text,
                speed=speed,
                continues=continues,
                variation=variation,
                seed=seed,
                name_emoji=name_emoji,
                first_frames=sys.maxsize,
            )
        )
        pcm = np.concatenate([p.pcm for p in pieces]) if pieces else np.zeros(0, np.float32)
        words = [w for p in pieces for w in p.words]
        if words:
            words[-1] = replace(words[-1], end_sample=len(pcm), quiet_sample=min(words[-1].quiet_sample, len(pcm)))
        return Speech(pcm, self.sample_rate, tuple(words), text)

    def stream(
        self,
        text: str,
        *,
        speed: float = 1.0,
        continues: bool = False,
        variation: float = 1.0,
        seed: int = 0,
        name_emoji: bool = False,
        first_frames: int | None = None,
    ) -> Generator[SpeechPiece, None, None]:
        """The sound of `synthesize` (within 1e-5) in stretches, each made when it is asked for.

        Closing the iterator stops the work. `first_frames`: length of the first stretch in frames of 256 samples.
        """
        if not 0.25 <= speed <= 4.0:
            raise VoiceError(f"a speed of {speed} cannot be spoken; choose one between 0.25 and 4")
        words = self.speakable(text, continues=continues, name_emoji=name_emoji).words
        if not words:
            return
        noise = zlib.crc32(f"{seed}\0{text}".encode())
        at = 0
        for index, sentence in enumerate(self._sentences(words)):
            utterance = self._model.utterance(sentence.phonemes, speed, variation, noise + index * 104729)
            trimmer = Trimmer(self._pauses, self.sample_rate, sentence.words[-1].mark, utterance.samples)
            timings: list[WordTiming] | None = None
            stretches = self._model.sound(utterance, *([] if first_frames is None else [first_frames]))
            for raw in stretches:
                pcm = np.clip(trimmer.push(raw) * _GAIN, -1.0, 1.0)
                if timings is None:
                    timings = _timings(sentence, utterance, trimmer.dropped, at)
                if len(pcm):
                    begun = [t for t in timings if t.start_sample < at + len(pcm)]
                    timings = timings[len(begun) :]
                    yield SpeechPiece(pcm, at, tuple(begun))
                    at += len(pcm)
            if timings:  # words of no length at the very end
                yield SpeechPiece(np.zeros(0, np.float32), at, tuple(timings))

    # ---- phonemes ------------------------------------------------------------------------------------------

    def _sounds_of(self, word: str) -> str:
        return " ".join("".join(s) for s in self._piper.phonemize(word))

    def _sentences(self, words: Sequence[SpokenWord]) -> list[_Sentence]:
        """The words as sentences of phonemes, divided as the phonemiser divides them."""
        text = " ".join(_respelled(w) + w.mark for w in words)
        sentences = [s for s in self._piper.phonemize(text) if any(p not in _MARKS for p in s)]
        joined: list[str] = []
        limits = []
        for sentence in sentences:
            joined += [*sentence, " "]
            limits.append(len(joined))
        starts = word_starts(joined, [_respelled(w) for w in words], self._alone)
        found: list[_Sentence] = []
        begin = 0
        for limit, sentence in zip(limits, sentences, strict=True):
            end = limit if limit < limits[-1] else sys.maxsize
            members = [i for i, s in enumerate(starts) if begin <= s < end]
            at = [min(starts[i] - begin, len(sentence)) for i in members]
            if members:
                found.append(_Sentence(sentence, [words[i] for i in members], at))
            elif found:
                last = found[-1]  # a sentence without a word of its own is spoken with the one before it
                found[-1] = _Sentence([*last.phonemes, " ", *sentence], last.words, last.starts)
            begin = limit
        return found


def _timings(sentence: _Sentence, utterance: Utterance, dropped: int, at: int) -> list[WordTiming]:
    """Each word's samples in the clause, of which this sentence begins at `at` with `dropped` samples cut off."""
    edges = np.concatenate([[0], np.cumsum(utterance.lengths)])  # edges[i + 1]: where phoneme i begins
    shift = at - dropped

    def place(phoneme: int) -> int:
        return max(at, int(edges[phoneme + 1]) + shift)

    begins = [at, *(place(s) for s in sentence.starts[1:])]
    ends = [*begins[1:], max(at, utterance.samples + shift)]
    timings = []
    for index, word in enumerate(sentence.words):
        stop = sentence.starts[index + 1] if index + 1 < len(sentence.words) else len(sentence.phonemes)
        while stop > sentence.starts[index] and sentence.phonemes[stop - 1] in _MARKS:
            stop -= 1
        quiet = min(max(place(stop), begins[index]), ends[index])
        timings.append(WordTiming(word.start, word.end, begins[index], ends[index], quiet))
    return timings


def _respelled(word: SpokenWord) -> str:
    return _RESPELLED.get(word.spoken, _RESPELLED.get(word.spoken.lower(), word.spoken))


def _give_back_memory() -> None:
    """Return the memory of loading to the system, where the C library keeps it (glibc)."""
    import ctypes
    import gc

    gc.collect()
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        except (OSError, AttributeError):
            return
