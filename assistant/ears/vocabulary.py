"""Whisper's tokens: the words it knows and the marks that steer it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from assistant.ears.errors import EarsModelError, EarsSettingsError

MAX_LENGTH = 448
"""Positions of Whisper's decoder; half of them may be spent on a prompt."""

TIME_STEP = 0.02
"""Seconds from one timestamp token to the next."""

MAX_HOT_TOKENS = MAX_LENGTH // 4


class WhisperVocabulary:
    """Text to ids and back, and the prompts that start a decode."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, *, multilingual: bool) -> None:
        self._tokenizer = tokenizer
        self._multilingual = multilingual
        self._start = self._mark("<|startoftranscript|>")
        self._previous = self._mark("<|startofprev|>")
        self._end = self._mark("<|endoftext|>")
        self._first_time = self._mark("<|notimestamps|>") + 1

    @classmethod
    def load(cls, folder: Path, *, multilingual: bool) -> WhisperVocabulary:
        """From `tokenizer.json` in a model folder; raises `EarsModelError`."""
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise EarsModelError(f"{file} is missing; pull the Whisper model again.")
        return cls(tokenizers.Tokenizer.from_file(str(file)), multilingual=multilingual)

    def encode(self, text: str) -> list[int]:
        """Ids of a text as it would stand in the middle of a sentence."""
        return self._tokenizer.encode(" " + text.strip(), add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, marks and timestamps left out."""
        return self._tokenizer.decode([i for i in ids if i < self._end]).strip()

    def last_time(self, ids: Sequence[int], otherwise: float) -> float:
        """Seconds of the last timestamp among ids; `otherwise` when there is none after the words."""
        for token in reversed(ids):
            if token >= self._first_time:
                return (token - self._first_time) * TIME_STEP
            if token < self._end:
                return otherwise
        return otherwise

    def prompt(self, language: str, hot_words: Sequence[str] = (), prefix: Sequence[int] = ()) -> list[int]:
        """Ids that start a decode: hot words as if said before, the marks, and words known already."""
        ids: list[int] = []
        if hot_words:
            ids += [self._previous, *self.encode(", ".join(hot_words) + ".")[:MAX_HOT_TOKENS]]
        ids.append(self._start)
        if self._multilingual:
            ids += [self._mark(f"<|{language}|>"), self._mark("<|transcribe|>")]
        if prefix:
            # Half of the positions stay free for new words.
            ids += [self._first_time, *prefix[: MAX_LENGTH // 2 - len(ids) - 1]]
        return ids

    def check_languages(self, languages: Sequence[str]) -> None:
        """Raises `EarsSettingsError` for a language this model does not know."""
        for language in languages:
            known = self._multilingual and self._tokenizer.token_to_id(f"<|{language}|>") is not None
            if language != "en" and not known:
                what = "does not know this language" if self._multilingual else "knows English only"
                raise EarsSettingsError(f"The Whisper model {what}, so language {language} cannot be allowed.")

    def _mark(self, text: str) -> int:
        found = self._tokenizer.token_to_id(text)
        if found is None:
            raise EarsModelError(f"The Whisper tokenizer has no {text}; pull the model again.")
        return found
