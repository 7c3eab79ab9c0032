"""Speech to text with Whisper in CTranslate2's format, in an encoder window fitted to the speech.

The encoder of the usual 30 s window is four fifths of the time. A shorter window is up to four times
faster, and runs into repetition loops unless all of these hold, each found by measurement: room for
silence after the speech, timestamp tokens allowed, a bound on the number of tokens, and a second try
in the full window when a loop shows all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assistant.audio.constants import SAMPLE_RATE
from assistant.ears.errors import EarsModelError, EarsSettingsError
from assistant.ears.hypothesis import UNSURE, Hypothesis, Mode, join_words, split_words
from assistant.ears.loops import loops, mostly_loops
from assistant.ears.mel import log_mel
from assistant.ears.vocabulary import MAX_LENGTH, WhisperVocabulary

FULL_WINDOW_S = 30.0
FRAMES_PER_SECOND = 100


@dataclass(frozen=True)
class AsrSettings:
    """Windows and safeguards of the decoder; seconds of sound unless said otherwise."""

    threads: int = 1
    languages: tuple[str, ...] = ("en",)
    """Languages that may be heard; with more than one a multilingual model chooses among them."""
    hot_words: tuple[str, ...] = ()
    """Names and terms the decoder should expect."""
    partial_window: float = 6.0
    final_window: float = 10.0
    margin: float = 2.0
    """Silence the window must hold after the speech."""
    tokens_per_second: float = 7.0
    spare_tokens: int = 12
    unsure_logprob: float = UNSURE
    """Mean log-probability below which a text from a short window is not believed."""
    lost_tail: float = 1.5
    """Sound at the end that the model says it did not write down: above this, it stopped too early."""

    def __post_init__(self) -> None:
        if not self.languages:
            raise EarsSettingsError("ASR needs at least one allowed language, such as en.")
        if not 1 <= self.partial_window <= self.final_window <= FULL_WINDOW_S:
            raise EarsSettingsError("ASR windows must obey 1 <= partial_window <= final_window <= 30.")


class Transcriber:
    """One loaded model. `transcribe` may be called from any thread and releases the GIL."""

    def __init__(self, model: Any, vocabulary: WhisperVocabulary, settings: AsrSettings) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self.settings = settings

    @classmethod
    def load(cls, path: str | Path, settings: AsrSettings | None = None) -> Transcriber:
        """Load a CTranslate2 Whisper folder (about 0.3 s for tiny); raises `EarsModelError`."""
        import ctranslate2

        settings = settings or AsrSettings()
        folder = Path(path)
        if not (folder / "model.bin").is_file():
            raise EarsModelError(f"{folder} holds no Whisper model (model.bin is missing); pull it again.")
        try:
            model = ctranslate2.models.Whisper(
                str(folder),
                device="cpu",
                compute_type="int8",
                intra_threads=settings.threads,
                inter_threads=1,
            )
        except (RuntimeError, ValueError) as error:
            raise EarsModelError(f"The Whisper model in {folder} cannot be loaded: {error}.") from error
        vocabulary = WhisperVocabulary.load(folder, multilingual=model.is_multilingual)
        vocabulary.check_languages(settings.languages)
        return cls(model, vocabulary, settings)

    def warm_up(self) -> None:
        """Decode a second of silence, so that the first real decode is not the slowest."""
        self._decode(np.zeros(SAMPLE_RATE, np.float32), Mode.PARTIAL, (), None)

    def transcribe(
        self,
        pcm: np.ndarray,
        mode: Mode = Mode.FINAL,
        prefix_words: Sequence[str] = (),
        language: str | None = None,
    ) -> Hypothesis:
        """The words in float32 [n] at 16 kHz, at most 30 s.

        `prefix_words` are words already sure to be at the beginning: the decoder starts behind them and
        they come back as part of the text. `language` saves choosing among the allowed ones again.
        """
        if len(pcm) > FULL_WINDOW_S * SAMPLE_RATE:
            raise ValueError(f"{len(pcm) / SAMPLE_RATE:.1f} s do not fit into Whisper's window of 30 s")
        heard = self._decode(pcm, mode, prefix_words, language)
        if mode is Mode.FULL or not self._doubtful(heard):
            return heard
        # Once more with more window and without the prefix, which may be what was wrong.
        fallback = Mode.FULL if mode is Mode.FINAL else Mode.FINAL
        return replace(self._decode(pcm, fallback, (), language), mode=mode, redone=True)

    def window(self, seconds: float, mode: Mode) -> float:
        """Encoder window in seconds for so much sound."""
        match mode:
            case Mode.PARTIAL:
                least = self.settings.partial_window
            case Mode.FINAL:
                least = self.settings.final_window
            case Mode.FULL:
                least = FULL_WINDOW_S
        return min(FULL_WINDOW_S, max(least, seconds + self.settings.margin))

    def _decode(self, pcm: np.ndarray, mode: Mode, prefix_words: Sequence[str], language: str | None) -> Hypothesis:
        import ctranslate2

        seconds = len(pcm) / SAMPLE_RATE
        window = self.window(seconds, mode)
        frames = 2 * round(window * FRAMES_PER_SECOND / 2)
        features = ctranslate2.StorageView.from_array(log_mel(pcm, frames, self._model.n_mels)[None])
        if language is None:
            features, language = self._choose_language(features)
        prefix = self._vocabulary.encode(join_words(tuple(prefix_words))) if prefix_words else []
        prompt = self._vocabulary.prompt(language, self.settings.hot_words, prefix)
        bound = self._bound(seconds, len(prefix))
        result = self._model.generate(
            features,
            [prompt],
            beam_size=1,
            # At most max_length / 2 tokens come back, or max_length less the prompt if that is fewer.
            max_length=min(MAX_LENGTH, max(2 * bound, bound + len(prompt))),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        ids = result.sequences_ids[0]
        text = self._vocabulary.decode(ids)
        # The score is the mean over all ids; those of the prefix are among them and cost nothing.
        logprob = result.scores[0] * len(ids) / (max(0, len(ids) - len(prefix)) + 1)
        return Hypothesis(
            text=text,
            no_speech_prob=float(result.no_speech_prob),
            avg_logprob=float(logprob),
            looped=len(ids) >= bound or mostly_loops(split_words(text)),
            ends_at=self._vocabulary.last_time(ids, seconds),
            seconds=seconds,
            mode=mode,
            language=language,
            window_s=window,
        )

    def _bound(self, seconds: float, prefix: int) -> int:
        """Tokens that so much speech can need, prefix included; nobody says more than 7 a second."""
        whole = int(seconds * self.settings.tokens_per_second) + self.settings.spare_tokens
        return min(max(whole, prefix + self.settings.spare_tokens), MAX_LENGTH // 2)

    def _doubtful(self, heard: Hypothesis) -> bool:
        if heard.silent:
            return False
        circles = heard.looped or loops(heard.words)
        if heard.mode is Mode.PARTIAL:
            # The last, half-spoken word of a partial is unsure by nature: that alone costs no second try.
            return circles
        unsure = heard.avg_logprob < self.settings.unsure_logprob
        return circles or unsure or heard.seconds - heard.ends_at > self.settings.lost_tail

    def _choose_language(self, features: Any) -> tuple[Any, str]:
        allowed = self.settings.languages
        if len(allowed) == 1 or not self._model.is_multilingual:
            return features, allowed[0]
        encoded = self._model.encode(features)
        ranking = self._model.detect_language(encoded)[0]
        return encoded, next((code[2:-2] for code, _ in ranking if code[2:-2] in allowed), allowed[0])
