"""How much do the fitted encoder windows cost in words, and what do they save in time?

On real human clips, every decode is compared with the model's own text in the full 30 s window: this
measures the windows, not the model.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from assistant.audio.constants import SAMPLE_RATE, samples
from assistant.audio.formats import probe, read_sound
from assistant.ears.errors import EarsError
from assistant.ears.hypothesis import Hypothesis, Mode
from assistant.ears.preroll import PRE_ROLL
from assistant.ears.stabiliser import agree, bare
from assistant.ears.transcriber import Transcriber

CLIP_FOLDERS = (
    Path("/usr/share/asterisk/sounds/en_US_f_Allison"),
    Path("/usr/share/codec2/wav"),
)
"""Of Debian's asterisk-core-sounds-en-wav and codec2-examples."""

WAYS = ("full", "final", "partial", "tail")
"""The 30 s window; the window of the final; that of partials; the same with a prefix, in mid-sentence."""

TAIL_STEP = samples(600)
"""How much shorter the sound was when the words of the prefix were agreed on."""

NOT_SPEECH = ("david4", "vk2tpm_004", "ve9qrp", "wav/all.", "beep", "tone", "silence/")
"""Files that are noise, tones or too long to be one utterance."""


@dataclass(frozen=True)
class WindowFigures:
    """One way of decoding, over all clips."""

    way: str
    words: int
    differing: int
    """Words inserted, deleted or replaced against the full window."""
    loops: int
    redone: int
    median_ms: float
    p90_ms: float

    @property
    def differing_percent(self) -> float:
        return 100.0 * self.differing / max(1, self.words)

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "differing_percent": round(self.differing_percent, 2)}


def run(model: str = "whisper-tiny.en", limit: int | None = 100, folders: Sequence[Path] = ()) -> dict[str, object]:
    """All figures as one document; raises `EarsError` where there are no recordings of people."""
    from assistant.models import find_model

    clips = find_clips(limit=limit, folders=folders or CLIP_FOLDERS)
    if not clips:
        raise EarsError(
            "There are no recordings to measure with; install the Debian packages asterisk-core-sounds-en-wav and "
            "codec2-examples, or name a folder of WAV files."
        )
    started = time.perf_counter()
    transcriber = Transcriber.load(find_model(model))
    loading = time.perf_counter() - started
    transcriber.warm_up()
    figures = measure(transcriber, clips)
    return {
        "model": model,
        "clips": len(clips),
        "threads": transcriber.settings.threads,
        "load_s": round(loading, 3),
        "ways": [one.as_dict() for one in figures],
    }


def show(result: dict[str, object]) -> None:
    """The figures as a table."""
    from rich.console import Console
    from rich.table import Table

    ways = result["ways"]
    assert isinstance(ways, list)
    table = Table(title=f"{result['model']}: {result['clips']} clips, loaded in {result['load_s']} s")
    for column in ("window", "words", "differing from 30 s", "loops", "redone", "median ms", "90 % ms"):
        table.add_column(column, justify="left" if column == "window" else "right")
    for way in ways:
        table.add_row(
            str(way["way"]),
            str(way["words"]),
            f"{way['differing_percent']:.1f} %",
            str(way["loops"]),
            str(way["redone"]),
            f"{way['median_ms']:.0f}",
            f"{way['p90_ms']:.0f}",
        )
    Console().print(table)


def find_clips(
    least_s: float = 1.0, most_s: float = 8.0, limit: int | None = None, folders: Sequence[Path] = CLIP_FOLDERS
) -> list[Path]:
    """Installed recordings of people, in a fixed order, spread evenly when there is a `limit`."""
    found = [path for folder in folders for path in sorted(folder.rglob("*.wav")) if _speech(path)]
    fitting = [path for path in found if least_s <= probe(path).seconds <= most_s]
    if limit is None or limit >= len(fitting):
        return fitting
    return [fitting[i * len(fitting) // limit] for i in range(limit)]


def measure(transcriber: Transcriber, clips: Sequence[Path], ways: Sequence[str] = WAYS) -> list[WindowFigures]:
    """Decode every clip in each way; returns their figures, in the order of `ways` ("full" first)."""
    tallies = {way: _Tally() for way in ways}
    for clip in clips:
        pcm = utterance_of(clip)
        full, full_s = _timed(transcriber, pcm, Mode.FULL)
        reference = _bare(full.words)
        for way, mode in (("final", Mode.FINAL), ("partial", Mode.PARTIAL)):
            if way in tallies:
                heard, spent = _timed(transcriber, pcm, mode)
                tallies[way].add(reference, heard, spent)
        tallies["full"].add(reference, full, full_s)
        if "tail" not in tallies:
            continue
        for sound, prefix, whole in _tails(transcriber, pcm):
            heard, spent = _timed(transcriber, sound, Mode.PARTIAL, prefix)
            tallies["tail"].add(_bare(whole), heard, spent)
    return [tally.figures(way) for way, tally in tallies.items()]


def _bare(words: Sequence[str]) -> list[str]:
    return [word for word in map(bare, words) if word]


def utterance_of(clip: Path) -> np.ndarray:
    """The clip as the ears hand it over: pre-roll before it, a little silence after it."""
    pcm = read_sound(clip)
    return np.concatenate([np.zeros(PRE_ROLL, np.float32), pcm, np.zeros(samples(100), np.float32)])


def differing(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Edit distance in words."""
    row = list(range(len(heard) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != got))
    return row[-1]


class _Tally:
    def __init__(self) -> None:
        self.words = self.differing = self.loops = self.redone = 0
        self.seconds: list[float] = []

    def add(self, reference: list[str], heard: Hypothesis, spent: float) -> None:
        self.words += len(reference)
        self.differing += differing(reference, _bare(heard.words))
        self.loops += heard.looped
        self.redone += heard.redone
        self.seconds.append(spent)

    def figures(self, way: str) -> WindowFigures:
        ordered = sorted(self.seconds) or [0.0]
        p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
        median = statistics.median(ordered)
        return WindowFigures(way, self.words, self.differing, self.loops, self.redone, 1e3 * median, 1e3 * p90)


def _tails(transcriber: Transcriber, pcm: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]]:
    """(sound, stable words, words of the full window) in the middle of the clip, where there are some."""
    if len(pcm) < 3 * SAMPLE_RATE:
        return
    cut = pcm[: len(pcm) * 3 // 4]
    whole = transcriber.transcribe(cut, Mode.FULL).words
    stable = agree(transcriber.transcribe(cut[:-TAIL_STEP], Mode.FULL).words, whole).stable
    if stable:
        yield cut, stable, whole


def _timed(
    transcriber: Transcriber, pcm: np.ndarray, mode: Mode, prefix: Sequence[str] = ()
) -> tuple[Hypothesis, float]:
    started = time.perf_counter()
    heard = transcriber.transcribe(pcm, mode, prefix)
    return heard, time.perf_counter() - started


def _speech(path: Path) -> bool:
    return not any(mark in path.as_posix() for mark in NOT_SPEECH)
