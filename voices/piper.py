"""A Piper voice: a clause of the model's own text in, sound with word timing out.

    voice = Voice.load(path)
    speech = voice.synthesize("**Dr. Sharma** paid $3.50.")
    speech.pcm, speech.sample_rate, speech.words        # float32 in [-1, 1]; see voices.timing
    speech.heard_chars(played_samples)

The clause is made speakable here, and sentence by sentence (as the phonemiser sees them) put through the model.
One thread, no spinning: beside a recogniser and a language model on two cores, a second thread makes it slower.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voices import graph
from voices.alignment import word_starts
from voices.errors import VoiceError
from voices.speakable import SpokenText, SpokenWord, speakable
from voices.timing import WordTiming, heard_chars

_SENTENCE_MARKS = frozenset(",.;:!? ")
# What the phonemiser would spell: interjections, and the letter A (it reads a lone one as the article).
_RESPELLED = {
    "A.": "eigh", "hm": "hmm", "hmmm": "hmm", "mm": "hmm", "mmm": "hmm", "mhm": "[[mhˈʌm]]", "mm-hm": "[[mhˈʌm]]",
    "mm-hmm": "[[mhˈʌm]]", "mmhmm": "[[mhˈʌm]]", "shh": "[[ʃˈː]]", "psst": "[[pst]]", "pfft": "[[pft]]",
}  # fmt: skip


@dataclass(frozen=True)
class Pauses:
    """The longest silence left behind a clause by its last mark, and before it, in seconds.

    The model ends each sentence with about 0.25 s and begins it with about 0.05 s of silence.
    """

    before: float = 0.01
    phrase: float = 0.06  # the sentence goes on without a mark or with a comma
    comma: float = 0.14
    sentence: float = 0.24

    def behind(self, mark: str) -> float:
        return {",": self.comma, ";": self.comma, "": self.phrase}.get(mark, self.sentence)


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


class Voice:
    """A loaded voice. Calls may come from any thread; they run one after the other."""

    def __init__(self, session: Any, config: Any, seeded: bool, pauses: Pauses) -> None:
        """Use `Voice.load`."""
        from piper import PiperVoice

        self._session = session
        self._piper = PiperVoice(session=session, config=config)
        self._seeded = seeded
        self._pauses = pauses
        self._lock = threading.Lock()
        self._alone = lru_cache(maxsize=4096)(self._sounds_of)
        self.sample_rate: int = config.sample_rate
        self.language: str = str(config.espeak_voice or "en").split("-")[0].split("_")[0] or "en"

    @classmethod
    def load(
        cls,
        path: str | Path,
        config_path: str | Path | None = None,
        *,
        threads: int = 1,
        pauses: Pauses | None = None,
    ) -> Voice:
        """Load an .onnx voice with its .onnx.json beside it (or at `config_path`) and speak a first word in silence.

        Raises VoiceError when a file is missing or is not a voice.
        """
        import onnxruntime
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
        model, seeded = graph.prepare(model_path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own exceptions share no public base class
            raise VoiceError(f"{model_path} is not a voice model that can be run; pull the voice again") from error
        voice = cls(session, config, seeded, pauses or Pauses())
        voice.synthesize("Yes.")
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
        if not 0.25 <= speed <= 4.0:
            raise VoiceError(f"a speed of {speed} cannot be spoken; choose one between 0.25 and 4")
        spoken = self.speakable(text, continues=continues, name_emoji=name_emoji)
        words = [w for w in spoken.words if w.spoken]
        pieces: list[NDArray[np.float32]] = []
        timings: list[WordTiming] = []
        offset = zlib.crc32(f"{seed}\0{text}".encode()) % graph.NOISE_VALUES
        if words:
            phonemes = self._phonemes([_respelled(w) + w.mark for w in words])
            sentences = self._by_sentence(phonemes, words)
            at = 0
            for index, (sounds, members, starts) in enumerate(sentences):
                pcm, lengths = self._run(sounds, speed, variation, (offset + index * 104729) % graph.NOISE_VALUES)
                last = index == len(sentences) - 1
                pcm, timed = self._timed(pcm, sounds, lengths, members, starts, self._pauses, last)
                pieces.append(pcm)
                timings += [_moved(t, at) for t in timed]
                at += len(pcm)
        pcm = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
        return Speech(pcm, self.sample_rate, tuple(timings), text)

    # ---- phonemes ------------------------------------------------------------------------------------------

    def _phonemes(self, words: Sequence[str]) -> list[list[str]]:
        """Sentences of phonemes, as the phonemiser divides them."""
        return [s for s in self._piper.phonemize(" ".join(words)) if any(p not in _SENTENCE_MARKS for p in s)]

    def _sounds_of(self, word: str) -> str:
        return " ".join("".join(s) for s in self._piper.phonemize(word))

    def _by_sentence(
        self, sentences: list[list[str]], words: Sequence[SpokenWord]
    ) -> list[tuple[list[str], list[SpokenWord], list[int]]]:
        """Each sentence's phonemes with its words and the phoneme at which each begins."""
        joined: list[str] = []
        limits = []
        for sentence in sentences:
            joined += [*sentence, " "]
            limits.append(len(joined))
        starts = word_starts(joined, [_respelled(w) for w in words], self._alone)
        result = []
        begin = 0
        for limit, sentence in zip(limits, sentences, strict=True):
            members = [i for i, s in enumerate(starts) if begin <= s < limit or (limit == limits[-1] and s >= limit)]
            result.append(
                (
                    sentence,
                    [words[i] for i in members],
                    [min(starts[i] - begin, len(sentence)) for i in members],
                )
            )
            begin = limit
        return [r for r in result if r[1]]

    # ---- sound ---------------------------------------------------------------------------------------------

    def _run(
        self, phonemes: list[str], speed: float, variation: float, offset: int
    ) -> tuple[NDArray[np.float32], list[int]]:
        """The model's sound, and the samples of each phoneme (the beginning mark's and the end's included)."""
        config = self._piper.config
        table = config.phoneme_id_map
        ids: list[int] = []
        owners: list[int] = []  # which phoneme each id belongs to: 0 the beginning, n + 1 the end
        for index, phoneme in enumerate(["^", *phonemes, "$"]):
            own = [*table.get(phoneme, ())] + ([*table.get("_", (0,))] if index <= len(phonemes) else [])
            if phoneme in table:
                ids += own
                owners += [index] * len(own)
        inputs: dict[str, Any] = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(
                [
                    config.noise_scale * variation,
                    config.length_scale / speed,
                    config.noise_w_scale * variation,
                ],
                np.float32,
            ),
        }
        if self._seeded:
            inputs[graph.NOISE_OFFSET] = np.array(offset, np.int64)
        if config.num_speakers > 1:
            inputs["sid"] = np.array([config.default_speaker_id], np.int64)
        with self._lock:
            audio, frames = self._session.run(None, inputs)[:2]
        pcm = np.asarray(audio, np.float32).reshape(-1)
        lengths = np.zeros(len(phonemes) + 2, np.int64)
        np.add.at(lengths, owners, (frames.reshape(-1) * config.hop_length).astype(np.int64))
        return pcm, [int(n) for n in lengths]

    def _timed(
        self,
        pcm: NDArray[np.float32],
        phonemes: list[str],
        lengths: list[int],
        words: Sequence[SpokenWord],
        starts: Sequence[int],
        pauses: Pauses,
        last: bool,
    ) -> tuple[NDArray[np.float32], list[WordTiming]]:
        """Trim the silence at both ends and give each word its samples."""
        edges = np.concatenate([[0], np.cumsum(lengths)])  # edges[i + 1] is where phoneme i begins
        total = len(pcm)
        begins = [0] + [min(int(edges[s + 1]), total) for s in starts[1:]]
        ends = begins[1:] + [total]
        quiets = []
        for index in range(len(words)):
            stop = starts[index + 1] if index + 1 < len(words) else len(phonemes)
            while stop > starts[index] and phonemes[stop - 1] in _SENTENCE_MARKS:
                stop -= 1
            quiets.append(min(int(edges[stop + 1]), ends[index]))
        cut_from, cut_to = self._sounding(pcm, pauses, words[-1].mark)
        pcm = np.clip(pcm[cut_from:cut_to] * _GAIN, -1.0, 1.0)
        timed = []
        for word, begin, end, quiet in zip(words, begins, ends, quiets, strict=True):
            begin, end, quiet = (min(max(n - cut_from, 0), len(pcm)) for n in (begin, end, quiet))
            timed.append(WordTiming(word.start, word.end, begin, end, max(quiet, begin)))
        return pcm, timed

    def _sounding(self, pcm: NDArray[np.float32], pauses: Pauses, mark: str) -> tuple[int, int]:
        """The part to keep: silence beyond the wanted pauses is cut off."""
        loud = np.flatnonzero(np.abs(pcm) > _SILENCE)
        if not len(loud):
            return 0, len(pcm)
        first = max(0, int(loud[0]) - int(pauses.before * self.sample_rate))
        last = min(len(pcm), int(loud[-1]) + 1 + int(pauses.behind(mark) * self.sample_rate))
        return first, last


_SILENCE = 0.005  # of full scale; speech has 0.08 on average
_GAIN = 1.35  # the model's peaks reach 0.7; its loudness is steady, so no clause is levelled by itself


def _moved(timing: WordTiming, samples: int) -> WordTiming:
    return replace(
        timing,
        start_sample=timing.start_sample + samples,
        end_sample=timing.end_sample + samples,
        quiet_sample=timing.quiet_sample + samples,
    )


def _respelled(word: SpokenWord) -> str:
    return _RESPELLED.get(word.spoken, _RESPELLED.get(word.spoken.lower(), word.spoken))
