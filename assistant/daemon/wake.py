"""The wake word: openWakeWord models, run by the wheel `pyopen-wakeword`, which brings them (the extra `wake`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.errors import CrosstalkError, ExitCode

DEAF_FOR = SAMPLE_RATE
"""Samples after a detection in which the same word is not heard again."""


class WakeError(CrosstalkError):
    """The library or the word is not there."""

    exit_code = ExitCode.USAGE


class WakeWord:
    """Listens for one word. Microphone thread only."""

    def __init__(self, word: str, threshold: float) -> None:
        """`word`: a model of the wheel, or an openWakeWord .tflite file. WakeError."""
        try:
            import pyopen_wakeword as library
        except (ImportError, OSError) as error:
            raise WakeError("a wake word needs the extra `wake`: pip install 'crosstalk-assistant[wake]'.") from error
        self.name = Path(word).stem
        self._threshold = threshold
        self._features = library.OpenWakeWordFeatures.from_builtin()
        self._model = _model(library, word)
        self._deaf = 0
        self.push(np.zeros(FRAME, np.float32))  # the library fills its windows now, which takes a second

    def push(self, frame: NDArray[np.float32]) -> bool:
        """20 ms of the microphone; whether the word has just been said."""
        self._deaf = max(0, self._deaf - len(frame))
        pcm = (np.clip(frame, -1, 1) * 32767).astype("<i2")
        best = 0.0
        for features in self._features.process_streaming(pcm.tobytes()):
            best = max(best, *self._model.process_streaming(features), 0.0)
        if best < self._threshold or self._deaf:
            return False
        self._deaf = DEAF_FOR
        return True


def _model(library: Any, word: str) -> Any:
    known = {model.value: model for model in library.Model}
    if word in known:
        return library.OpenWakeWord.from_builtin(known[word])
    path = Path(word).expanduser()
    if not path.is_file():
        raise WakeError(f"there is no wake word '{word}'; there are {', '.join(known)}, or give a .tflite file.")
    # The library hands the file to C unseen, and what is no model ends the process there.
    if path.read_bytes()[4:8] != b"TFL3":
        raise WakeError(f"{path} is no openWakeWord model (not a .tflite file).")
    return library.OpenWakeWord.from_model(path)
