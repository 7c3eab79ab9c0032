"""`crosstalk ctl`: a command, its answer in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assistant.cli.console import print_json
from assistant.daemon.client import Control
from assistant.daemon.places import find_socket

_FIELD = {"say": "text", "ask": "text", "persona": "name"}


def run_ctl(command: str, words: str, socket: Path | None, *, as_json: bool, wait: bool) -> None:
    """Ask and print. NoDaemon, Refused."""
    fields: dict[str, Any] = {}
    if words:
        fields[_FIELD.get(command, "text")] = words
    if command == "ask" and not wait:
        fields["wait"] = False
    with Control(find_socket(socket)) as control:
        answer = control.ask(command, **fields)
    if as_json:
        print_json(answer)
        return
    for line in _lines(command, answer):
        print(line)


def _lines(command: str, answer: dict[str, Any]) -> list[str]:
    match command:
        case "status":
            sound = f"{answer['microphone']} / {answer['speaker']}" if answer["microphone"] else "none yet"
            return [
                f"{answer['state']} (persona {answer['persona']}, {answer['turns']} turns since the start)",
                f"sound     {sound}",
                f"losses    {answer['sound']['lost']} of devices, {answer['sound']['underflows']} underflows",
                f"engine    {answer['engine']['held']} of {answer['engine']['pages']} pages held",
                f"up        {answer['seconds']:.0f} s, process {answer['pid']}, version {answer['version']}",
            ]
        case "ask":
            if "answer" not in answer:
                return []
            return [answer["answer"] + (" (interrupted)" if answer["interrupted"] else "")]
        case "persona":
            others = f" (there are {', '.join(answer['personas'])})" if "personas" in answer else ""
            return [answer["persona"] + others]
        case "reload":
            later = answer["needs_restart"]
            told = f"changed: {', '.join(answer['changed']) or 'nothing'}"
            return [told + (f"; after a restart: {', '.join(later)}" if later else "")]
        case "save":
            return [f"saved {answer['tokens']} tokens"]
        case _:
            return ["ok"]
