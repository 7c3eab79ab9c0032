"""A WAV writer whose file is valid at every moment, so that Ctrl-C or a crash loses nothing."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from assistant.audio.errors import SoundWriteError

HEADER_BYTES = 44
MAX_DATA_BYTES = 2**32 - 1 - HEADER_BYTES


class WavWriter:
    """16-bit PCM to a WAV file, one channel or more.

    After every write the sizes in the header are brought up to date and handed to the operating
    system: whoever opens the file then, or after the process was killed, finds all sound so far.
    """

    def __init__(self, path: str | Path, sample_rate: int, channels: int = 1) -> None:
        self.path = Path(path)
        self.sample_rate = sample_rate
        self.channels = channels
        self._bytes = 0
        try:
            self._file: BinaryIO = self.path.open("wb")
            self._write_header()
        except OSError as error:
            raise self._failure(error) from error

    @property
    def frames(self) -> int:
        """Samples per channel written so far."""
        return self._bytes // (2 * self.channels)

    def write(self, pcm: np.ndarray) -> None:
        """Append float32 [n] (mono) or [n, channels]; values beyond ±1 are clipped."""
        columns = pcm.reshape(-1, 1) if pcm.ndim == 1 else pcm
        if columns.shape[1] != self.channels:
            raise ValueError(f"{columns.shape[1]} channels given to a writer of {self.channels}")
        data = to_pcm16(columns).tobytes()
        if self._bytes + len(data) > MAX_DATA_BYTES:
            raise SoundWriteError(f"{self.path} reached the 4 GB a WAV file can hold; start a new file.")
        try:
            self._file.seek(HEADER_BYTES + self._bytes)
            self._file.write(data)
            self._bytes += len(data)
            self._write_header()
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_header(self) -> None:
        block = 2 * self.channels
        header = struct.pack(
            "<4sI4s4sIHHIIHH4sI",
            *(b"RIFF", HEADER_BYTES - 8 + self._bytes, b"WAVE"),
            *(b"fmt ", 16, 1, self.channels, self.sample_rate, self.sample_rate * block, block, 16),
            *(b"data", self._bytes),
        )
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()

    def _failure(self, error: OSError) -> SoundWriteError:
        return SoundWriteError(f"{self.path} cannot be written: {error.strerror or error}.")


def to_pcm16(pcm: np.ndarray) -> np.ndarray:
    """float32 in [-1, 1] to int16 of the same shape, clipped and rounded."""
    return np.rint(np.clip(pcm, -1.0, 1.0) * 32767.0).astype("<i2")


def write_wav(path: str | Path, pcm: np.ndarray, sample_rate: int) -> None:
    """Write a whole signal, float32 [n] or [n, channels]; raises `SoundWriteError`."""
    with WavWriter(path, sample_rate, 1 if pcm.ndim == 1 else pcm.shape[1]) as writer:
        writer.write(pcm)
