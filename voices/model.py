"""Running a Piper voice's network: phonemes in, frames and their lengths out, frames to sound in stretches."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voices import graph
from voices.errors import VoiceError

_REACH = 12  # frames to either side that the decoder looks at; from 12 on the result does not change any more
_FIRST_FRAMES = 32  # 0.37 s of sound: decoded in the time that it takes to hand it to the device
_MOST_FRAMES = 192  # bounds the memory of a long sentence
_BEGIN, _END, _PAD = "^", "$", "_"


@dataclass(frozen=True)
class Utterance:
    """What the front of the network made of one sentence.

    `lengths[i]` is the number of samples of phoneme `i - 1`; the first belongs to the beginning, the last to the
    end mark. `frames` holds the decoder's inputs, or the sound itself where the graph could not be cut.
    """

    frames: tuple[NDArray[np.float32], ...]
    lengths: NDArray[np.int64]

    @property
    def samples(self) -> int:
        return int(self.lengths.sum())


class PiperModel:
    """The network of one voice. Thread-safe; calls run one after the other."""

    def __init__(self, path: Path, config: Any, threads: int) -> None:
        """Load it; raises VoiceError when the file is no voice model. `config` is Piper's own."""
        import onnxruntime

        prepared = graph.prepare(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # every clause has another length: patterns cost 45 MB and save no time
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")

        def session(model: bytes) -> Any:
            try:
                return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime's own exceptions share no public base class
                raise VoiceError(f"{path} is not a voice model that can be run; pull the voice again") from error

        self._front = session(prepared.front)
        self._back = session(prepared.back) if prepared.back is not None else None
        # not `prepared` itself: it holds the serialised network, 67 MB
        self._frames, self._lengths, self._seeded = prepared.frames, prepared.lengths, prepared.seeded
        self._config = config
        self._lock = threading.Lock()
        self._hop: int = config.hop_length

    def utterance(self, phonemes: Sequence[str], speed: float, variation: float, noise: int) -> Utterance:
        """Run the front for one sentence of phonemes. `noise`: where in the noise table to begin."""
        config = self._config
        table = config.phoneme_id_map
        ids: list[int] = []
        owners: list[int] = []
        for index, phoneme in enumerate([_BEGIN, *phonemes, _END]):
            if phoneme in table:
                own = [*table[phoneme], *(table.get(_PAD, ()) if index <= len(phonemes) else ())]
                ids += own
                owners += [index] * len(own)
        inputs: dict[str, Any] = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(
                [config.noise_scale * variation, config.length_scale / speed, config.noise_w_scale * variation],
                np.float32,
            ),
        }
        if self._seeded:
            inputs[graph.NOISE_OFFSET] = np.array(noise % graph.NOISE_VALUES, np.int64)
        if config.num_speakers > 1:
            inputs["sid"] = np.array([config.default_speaker_id], np.int64)
        wanted = [*self._frames, self._lengths]
        with self._lock:
            *frames, durations = self._front.run(wanted, inputs)
        lengths = np.zeros(len(phonemes) + 2, np.int64)
        np.add.at(lengths, owners, (durations.reshape(-1) * self._hop).astype(np.int64))
        return Utterance(tuple(frames), lengths)

    def sound(self, utterance: Utterance, first_frames: int = _FIRST_FRAMES) -> Iterator[NDArray[np.float32]]:
        """The utterance's samples in stretches, the first short, each next one twice as long up to 2.2 s.

        The stretches put together are the sound of the whole (within 1e-5: the convolutions see all they reach).
        """
        if self._back is None:
            yield utterance.frames[0].reshape(-1)
            return
        total = utterance.frames[0].shape[2]
        begin, width = 0, min(max(1, first_frames), _MOST_FRAMES)
        while begin < total:
            end = min(total, begin + width)
            if total - end < width // 2:
                end = total  # no tiny rest
            yield self._decode(utterance, begin, end, total)
            begin, width = end, min(width * 2, _MOST_FRAMES)

    def _decode(self, utterance: Utterance, begin: int, end: int, total: int) -> NDArray[np.float32]:
        low, high = max(0, begin - _REACH), min(total, end + _REACH)
        inputs = {
            name: tensor[:, :, low:high] if tensor.ndim == 3 and tensor.shape[2] == total > 1 else tensor
            for name, tensor in zip(self._frames, utterance.frames, strict=True)
        }
        with self._lock:
            assert self._back is not None
            sound = self._back.run(None, inputs)[0].reshape(-1)
        return sound[(begin - low) * self._hop : (end - low) * self._hop]
