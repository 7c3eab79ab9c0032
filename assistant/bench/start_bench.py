"""`crosstalk bench start`: from the start of a process to listening, and its peak of memory, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from assistant.errors import CrosstalkError

_CHILD = """
import json, resource, sys
from assistant.build import converse, load
from assistant.conversation.workers import ThreadWorkers
from assistant.personas import load_persona
from assistant.replay import WallClock
from assistant.settings import default_paths, parse_settings
import numpy as np, time
persona, settings = load_persona("default"), parse_settings()
stages = []
parts = load(default_paths(persona, settings), settings, lambda name: stages.append((name, time.time())))
clock = WallClock()
conversation = converse(parts, persona, ThreadWorkers(clock.wake), clock.now)
conversation.frame(np.zeros(320, np.float32))
listening = time.time()
conversation.close(); parts.close()
scale = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
print(json.dumps({"listening": listening, "stages": stages, "peak": peak}))
"""


class StartFailed(CrosstalkError):
    """The measured process did not come up."""


def run(repeat: int = 3) -> dict[str, Any]:
    """The median of `repeat` starts. Seconds and megabytes."""
    starts = sorted((_once() for _ in range(repeat)), key=lambda start: start["seconds"])
    return {**starts[len(starts) // 2], "all_seconds": [start["seconds"] for start in starts]}


def _once() -> dict[str, Any]:
    began = time.time()
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise StartFailed(f"the assistant did not start: {last[0]}")
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return {
        "seconds": round(told["listening"] - began, 2),
        "peak_mb": round(told["peak"] / 1e6),
        "stages": {name: round(at - began, 2) for name, at in told["stages"]},
    }


def show(result: dict[str, Any]) -> None:
    """As lines."""
    print(f"listening after  {result['seconds']} s (median of {result['all_seconds']})")
    print(f"peak memory      {result['peak_mb']} MB")
    for name, seconds in result["stages"].items():
        print(f"  {name:16} {seconds} s")
