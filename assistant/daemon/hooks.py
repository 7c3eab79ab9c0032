"""Commands that are run when something happens. They get the event as JSON on standard input, and a time limit.

One at a time, on a thread of their own: whatever they do, the conversation does not wait. Where more happens than they
can follow, the newest events are dropped, and counted.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from dataclasses import dataclass
from typing import Any

from assistant.daemon.config import HookChoice
from assistant.daemon.log import Log
from assistant.live import FrontEnd
from assistant.timeline.events import Event, EventType, Turn

WAITING = 32
"""Events kept for a slow command."""
_NAMES = {EventType.WAKE: "wake", EventType.USER_TURN: "user_turn", EventType.ERROR: "error"}


@dataclass(frozen=True)
class _Call:
    argv: tuple[str, ...]
    payload: bytes
    timeout: float


class Hooks(FrontEnd):
    """A front end that runs commands."""

    def __init__(self, choice: HookChoice, log: Log) -> None:
        self._choice = choice
        self._log = log
        self._calls: queue.Queue[_Call | None] = queue.Queue(WAITING)
        self._told = -1
        """The last turn whose answer was told."""
        self.dropped = 0
        self.failed = 0
        self._thread = threading.Thread(target=self._work, name="hooks", daemon=True)
        self._thread.start()

    def use(self, choice: HookChoice) -> None:
        """Other commands from now on."""
        self._choice = choice

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        if (name := _NAMES.get(event.type)) is not None:
            self._queue(name, {key: value for key, value in event.as_json().items() if key != "type"})

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        if turn.index > self._told and turn.heard_text:
            self._told = turn.index
            about = {"turn": turn.index, "user": turn.user_text, "text": turn.heard_text}
            self._queue("answer", about | {"interrupted": turn.interrupted})

    def close(self) -> None:
        """Give the commands that wait a moment to run, then leave them."""
        try:
            self._calls.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(2)

    def _queue(self, name: str, about: dict[str, Any]) -> None:
        argv = self._choice.argv(name)
        if not argv:
            return
        payload = json.dumps({"event": name, **about}, ensure_ascii=False).encode() + b"\n"
        try:
            self._calls.put_nowait(_Call(argv, payload, self._choice.timeout))
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if trouble := self._run(call):
                self.failed += 1
                self._log.warning("hook", command=call.argv[0], trouble=trouble)

    @staticmethod
    def _run(call: _Call) -> str:
        """Run it; what went wrong, or nothing."""
        try:
            process = subprocess.Popen(
                call.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            return f"cannot be run ({error.strerror})"
        try:
            process.communicate(call.payload, timeout=call.timeout)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return f"took longer than {call.timeout:g} s and was ended"
        return "" if process.returncode == 0 else f"ended with exit code {process.returncode}"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started."""
    import os
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()
