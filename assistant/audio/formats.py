"""Sound files of any kind in, 16 kHz mono float32 out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.errors import SoundReadError
from assistant.audio.resample import FileResampler

BLOCK_SECONDS = 1.0


@dataclass(frozen=True)
class SoundInfo:
    """What a sound file says about itself, before anything is decoded."""

    path: Path
    sample_rate: int
    channels: int
    frames: int
    """Samples per channel, as the header tells (0 where the header does not know)."""
    kind: str
    """Container and sample format, such as "WAV PCM_16"."""

    @property
    def seconds(self) -> float:
        return self.frames / self.sample_rate


def probe(path: str | Path) -> SoundInfo:
    """Describe a sound file; raises `SoundReadError` when it is missing, empty or no sound file."""
    with _opened(Path(path)) as file:
        return _info(Path(path), file)


def read_sound(path: str | Path, rate: int = SAMPLE_RATE) -> np.ndarray:
    """The whole file as mono float32 [n] at `rate`; raises `SoundReadError`."""
    return np.concatenate(list(sound_blocks(path, rate)))


def sound_blocks(path: str | Path, rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """The file as blocks of mono float32 at `rate`, about a second each, never empty.

    Only one block is in memory at a time, so a recording of hours costs no more than one of seconds.
    Raises `SoundReadError` before the first block if there is nothing to hear in the file.
    """
    path = Path(path)
    with _opened(path) as file:
        resampler = FileResampler(file.samplerate, rate)
        step = max(1, int(file.samplerate * BLOCK_SECONDS))
        heard = False
        while True:
            try:
                block = file.read(step, dtype="float32", always_2d=True)
            except soundfile.LibsndfileError as error:
                raise SoundReadError(f"{path} breaks off or is damaged ({_reason(error)}).") from error
            if not len(block):
                break
            heard = True
            out = resampler.push(_mono(block))
            if len(out):
                yield out
        if not heard:
            raise SoundReadError(f"{path} is a sound file without a single sample; record it again.")
        rest = resampler.finish()
        if len(rest):
            yield rest


def sound_frames(path: str | Path, frame: int = FRAME, rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """The file as frames of exactly `frame` samples, the last one filled up with silence."""
    yield from frames_of(sound_blocks(path, rate), frame)


def frames_of(blocks: Iterator[np.ndarray], frame: int = FRAME) -> Iterator[np.ndarray]:
    """Cut blocks of any length into frames of `frame` samples; the last is filled up with zeros."""
    rest = np.zeros(0, np.float32)
    for block in blocks:
        rest = np.concatenate([rest, block]) if len(rest) else block
        whole = len(rest) // frame * frame
        yield from rest[:whole].reshape(-1, frame)
        rest = rest[whole:]
    if len(rest):
        yield np.concatenate([rest, np.zeros(frame - len(rest), np.float32)])


def _mono(block: np.ndarray) -> np.ndarray:
    """Mean of the channels of float32 [n, channels], in [-1, 1]; NaN and infinity become silence."""
    mono = block[:, 0] if block.shape[1] == 1 else block.mean(axis=1)
    mono = np.where(np.isfinite(mono), mono, np.float32(0))
    return np.clip(mono, -1.0, 1.0, dtype=np.float32)


def _opened(path: Path) -> soundfile.SoundFile:
    if not path.exists():
        raise SoundReadError(f"There is no file {path}; check the name.")
    if path.is_dir():
        raise SoundReadError(f"{path} is a folder; give a sound file.")
    try:
        if path.stat().st_size == 0:
            raise SoundReadError(f"{path} is empty (0 bytes); record it again.")
        return soundfile.SoundFile(path)
    except soundfile.LibsndfileError as error:
        raise SoundReadError(
            f"{path} is not a sound file that can be read ({_reason(error)}); give WAV, FLAC, OGG or MP3."
        ) from error
    except OSError as error:
        raise SoundReadError(f"{path} cannot be read: {error.strerror or error}.") from error


def _info(path: Path, file: soundfile.SoundFile) -> SoundInfo:
    return SoundInfo(path, file.samplerate, file.channels, max(0, file.frames), f"{file.format} {file.subtype}")


def _reason(error: soundfile.LibsndfileError) -> str:
    return error.error_string.rstrip(". ") or "unknown format"
