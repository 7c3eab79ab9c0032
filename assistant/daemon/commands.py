"""The commands of the control socket: which fields each takes, and what it does."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assistant.errors import CrosstalkError
from assistant.personas import known_personas

if TYPE_CHECKING:
    from assistant.daemon.service import Service

LONGEST_TEXT = 4000


class BadRequest(CrosstalkError):
    """A command that is not there, or fields that do not fit it."""


Answer = dict[str, Any]


def handle(service: Service, request: dict[str, Any]) -> Answer:
    """Do what `request` asks; errors of ours become the answer's sentence."""
    name = request["command"]
    entry = COMMANDS.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(COMMANDS)}."
        raise BadRequest(f"there is no command '{name[:40]}'; {hint}")
    fields, run = entry
    odd = [field for field in request if field not in (*fields, "command", "id")]
    if odd:
        raise BadRequest(f"'{name}' takes {' and '.join(fields) or 'no fields'}, not '{odd[0][:40]}'.")
    return run(service, request)


def _text(request: dict[str, Any]) -> str:
    text = request.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest(f"'{request['command']}' needs a text.")
    if len(text) > LONGEST_TEXT:
        raise BadRequest(f"a text may have {LONGEST_TEXT} characters.")
    return " ".join(text.split())


def _status(service: Service, request: dict[str, Any]) -> Answer:
    return service.status_report()


def _mute(service: Service, request: dict[str, Any]) -> Answer:
    service.mute(True)
    return {"muted": True}


def _unmute(service: Service, request: dict[str, Any]) -> Answer:
    service.mute(False)
    return {"muted": False}


def _stop(service: Service, request: dict[str, Any]) -> Answer:
    service.session.stop()
    return {}


def _say(service: Service, request: dict[str, Any]) -> Answer:
    service.sayings.say(_text(request))
    return {}


def _ask(service: Service, request: dict[str, Any]) -> Answer:
    wait = request.get("wait", True)
    if not isinstance(wait, bool):
        raise BadRequest("'wait' is true or false.")
    turn = service.sayings.ask(_text(request), wait=wait)
    if turn is None:
        return {}
    answer = {"answer": turn.heard_text, "interrupted": turn.interrupted, "turn": turn.index}
    return answer | ({"meant": turn.assistant_text} if turn.interrupted else {})


def _persona(service: Service, request: dict[str, Any]) -> Answer:
    name = request.get("name")
    if name is None:
        return {"persona": service.persona_name, "personas": known_personas()}
    if not isinstance(name, str):
        raise BadRequest("a persona's name is a text.")
    service.become(name)
    return {"persona": service.persona_name}


def _reload(service: Service, request: dict[str, Any]) -> Answer:
    return service.reload()


def _save(service: Service, request: dict[str, Any]) -> Answer:
    return {"tokens": service.memory.save(service.session)}


def _shutdown(service: Service, request: dict[str, Any]) -> Answer:
    service.end("asked over the control socket")
    return {}


COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Service, dict[str, Any]], Answer]]] = {
    "status": ((), _status),
    "mute": ((), _mute),
    "unmute": ((), _unmute),
    "stop": ((), _stop),
    "say": (("text",), _say),
    "ask": (("text", "wait"), _ask),
    "persona": (("name",), _persona),
    "reload": ((), _reload),
    "save": ((), _save),
    "shutdown": ((), _shutdown),
}
"""Name: its fields, and what it does."""
