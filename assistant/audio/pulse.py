"""Whether PulseAudio or PipeWire has moved our streams to other devices: they do it without a word.

A microphone is unplugged, the server hands the stream another one, and frames go on as if nothing had happened. The
server's own tool tells; where it is not installed, this watches nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from typing import Any

_PATIENCE = 5.0
_TELLING = ("on source ", "on sink ", "on server", "on source-output ", "on sink-input ")


@dataclass(frozen=True)
class Attachment:
    """Names of the devices this process's streams are on, and of the defaults; empty if there is none."""

    source: str = ""
    sink: str = ""
    default_source: str = ""
    default_sink: str = ""


def attachment() -> Attachment | None:
    """How things stand now; None without a server or its tool."""
    try:
        sources = _names("sources")
        sinks = _names("sinks")
        info = json.loads(_pactl("info"))
        return Attachment(
            source=sources.get(_ours("source-outputs", "source"), ""),
            sink=sinks.get(_ours("sink-inputs", "sink"), ""),
            default_source=info.get("default_source_name", ""),
            default_sink=info.get("default_sink_name", ""),
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


class PulseWatch:
    """Sets `stirred` when a device or stream of the server comes, goes or changes."""

    def __init__(self) -> None:
        self.stirred = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        if shutil.which("pactl"):
            try:
                self._process = subprocess.Popen(
                    ["pactl", "subscribe"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=os.environ | {"LC_ALL": "C"},
                )
            except OSError:
                return
            threading.Thread(target=self._listen, name="pulse-watch", daemon=True).start()

    def _listen(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            if any(sign in line for sign in _TELLING):
                self.stirred.set()

    def close(self) -> None:
        """Stop watching."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)


def _pactl(*arguments: str) -> str:
    done = subprocess.run(
        ["pactl", "--format=json", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    return done.stdout


def _names(kind: str) -> dict[Any, str]:
    return {entry["index"]: entry["name"] for entry in json.loads(_pactl("list", kind))}


def _ours(kind: str, device: str) -> Any:
    """The number of the device that a stream of this process is on."""
    for entry in json.loads(_pactl("list", kind)):
        if entry.get("properties", {}).get("application.process.id") == str(os.getpid()):
            return entry[device]
    return None
