"""Human speech that packages ship, by short names: `asterisk:hello`, `codec2:morig`, or a path.

Nothing is shipped here: where a package is not installed, the scenarios that need it are left out.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.formats import read_sound
from assistant.audio.resample import resample
from assistant.scenarios.format import ScenarioError

ASTERISK = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
ASTERISK_TEXTS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
CODEC2 = Path("/usr/share/codec2")
RAW_RATE = 8_000
"""codec2's `.raw` files: 16-bit, mono, 8 kHz."""


class MissingVoice(ScenarioError):
    """A recording or voice that this machine does not have."""


def recording(name: str, beside: Path | None = None) -> np.ndarray:
    """Float32 mono at 16 kHz of the recording called `name`; paths are relative to `beside`."""
    path = _path(name, beside)
    if not path.is_file():
        raise MissingVoice(f"the recording {name} is not on this machine; {_how(name)}.")
    if path.suffix == ".raw":
        pcm = np.fromfile(path, "<i2").astype(np.float32) / 32768
        return resample(pcm, RAW_RATE, SAMPLE_RATE)
    return read_sound(path)


def _path(name: str, beside: Path | None) -> Path:
    source, colon, rest = name.partition(":")
    if colon and source == "asterisk":
        return ASTERISK / f"{rest}.wav"
    if colon and source == "codec2":
        return next((p for p in (CODEC2 / "wav" / f"{rest}.wav", *_raw(rest)) if p.is_file()), CODEC2 / rest)
    return (beside or Path()) / name


def _raw(name: str) -> tuple[Path, ...]:
    return CODEC2 / "raw" / f"{name}.wav", CODEC2 / "raw" / f"{name}.raw"


def _how(name: str) -> str:
    packages = {"asterisk": "asterisk-core-sounds-en-wav", "codec2": "codec2-examples"}
    package = packages.get(name.partition(":")[0])
    return f"on Debian: apt-get install {package}" if package else "check the name"


@cache
def asterisk_texts() -> dict[str, str]:
    """What each Asterisk prompt says, as its package tells; empty where it is not installed."""
    if not ASTERISK_TEXTS.is_file():
        return {}
    with gzip.open(ASTERISK_TEXTS, "rt", encoding="utf-8", errors="replace") as lines:
        pairs = (line.partition(":") for line in lines if not line.startswith(";"))
        return {name.strip(): text.strip() for name, colon, text in pairs if colon}
