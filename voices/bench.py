"""Figures of this room: `python -m voices.bench VOICE.onnx` prints them as a table."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from voices import Voice, speakable

_CLAUSES = (
    "Sure.",
    "The capital of France is Paris.",
    "I think that is a very good question, and the answer depends on many things.",
)


def _median(work: Callable[[], object], times: int = 9) -> float:
    """Milliseconds."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


def _first(voice: Voice, text: str) -> object:
    return next(voice.stream(text))


def _resident() -> float:
    """Memory of this process in MB (Linux; elsewhere 0)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    line = next(x for x in status.read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main(path: str) -> None:
    """Measure and print."""
    imports = _median(lambda: subprocess.run([sys.executable, "-c", "import voices"], check=True), 5)
    nothing = _median(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True), 5)
    before = _resident()
    begin = time.perf_counter()
    voice = Voice.load(path)
    load = time.perf_counter() - begin
    loaded = _resident()
    print("| what | figure |\n|---|---|")
    print(f"| import beyond numpy | {imports - nothing:.0f} ms |")
    print(f"| load a voice, first word spoken | {load:.1f} s, {loaded - before:.0f} MB |")
    speakable(_CLAUSES[-1])
    print(f"| a clause made speakable | {_median(lambda: speakable(_CLAUSES[-1])):.2f} ms |")
    for text in _CLAUSES:
        whole = _median(partial(voice.synthesize, text))
        first = _median(partial(_first, voice, text))
        seconds = voice.synthesize(text).seconds
        print(
            f'| "{text}" ({seconds:.1f} s of sound) | first sound after {first:.0f} ms, all in {whole:.0f} ms '
            f"({whole / seconds / 1000:.2f} of real time) |"
        )
    print(f"| memory at the end, all of this process | {_resident():.0f} MB |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m voices.bench VOICE.onnx")
    main(sys.argv[1])
