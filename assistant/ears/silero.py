"""Silero's voice activity model, streamed: its state and context are carried from call to call."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from assistant.ears.errors import EarsModelError

CHUNK = 512
"""Samples the model looks at in one step (32 ms at 16 kHz)."""

CONTEXT = 64
"""Samples of the previous chunk that go in front of each chunk."""


class SileroVad:
    """Speech probability of 32 ms chunks; one thread, about 0.15 ms a chunk.

    The first output of a fresh state is not to be trusted for a few chunks after a loud start, so one
    object is meant to live as long as its stream.
    """

    chunk = CHUNK

    def __init__(self, model: Path | None = None) -> None:
        import onnxruntime

        path = model or silero_path()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # A pool that spins would take half of a two-core machine away from the LLM for nothing.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(path), providers=["CPUExecutionProvider"], sess_options=options
        )
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._h = np.zeros((1, 1, 128), np.float32)
        self._c = np.zeros((1, 1, 128), np.float32)
        self._input = np.zeros((1, CONTEXT + CHUNK), np.float32)

    def probability(self, chunk: np.ndarray) -> float:
        """Probability in [0, 1] that the next `CHUNK` samples (float32) hold speech."""
        self._input[0, :CONTEXT] = self._input[0, CHUNK:]
        self._input[0, CONTEXT:] = chunk
        out, self._h, self._c = self._session.run(None, {"input": self._input, "h": self._h, "c": self._c})
        return float(out.reshape(-1)[-1])


def silero_path() -> Path:
    """The model file inside the installed faster_whisper package, found without importing it."""
    spec = importlib.util.find_spec("faster_whisper")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        found = sorted(Path(folder, "assets").glob("silero_vad_v6*.onnx"))
        if found:
            return found[0]
    raise EarsModelError("The Silero voice detector is missing; install faster-whisper 1.2 or newer, or use webrtc.")
