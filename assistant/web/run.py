"""`crosstalk web` from its wishes to a served page."""

from __future__ import annotations

import select
import socket
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import uvicorn

from assistant.build import Parts, character, converse, load
from assistant.ears.echo import CancellerKind
from assistant.errors import CrosstalkError, ExitCode
from assistant.live import FrontEnd, LiveSession
from assistant.personas import Persona, PersonaError, known_personas, load_persona
from assistant.personas.live import LivePersona
from assistant.settings import default_paths, parse_settings
from assistant.web.house import House, Place
from assistant.web.messages import MessageError
from assistant.web.server import PageFacts, Site

LARGEST_MESSAGE = 8_192
"""Bytes of one socket message; a longer one ends the connection before it is read."""


class PortError(CrosstalkError):
    """The port cannot be had."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class WebRequest:
    """What the user asked for."""

    port: int = 0
    """0: any free one."""
    sessions: int = 1
    persona: str = "default"
    overrides: tuple[str, ...] = ()
    open_browser: bool = False


def bind(port: int) -> socket.socket:
    """A listening socket on this machine only. PortError if the port is taken or not allowed."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port left a second ago may be had again
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise PortError(f"port {port} cannot be used ({reason}); give another with --port, or none.") from error
    return listener


class WebService:
    """A bound, not yet served page on loaded models."""

    def __init__(self, parts: Parts, persona: Persona, request: WebRequest, listener: socket.socket) -> None:
        self._parts = parts
        self._persona = persona
        self._reference = request.persona
        self._speaking: WeakKeyDictionary[LiveSession, LivePersona] = WeakKeyDictionary()
        self._listener = listener
        self.port = listener.getsockname()[1]
        self.house = House(self._begin, persona.name, request.sessions)
        names = f"{parts.names.asr}, {parts.names.llm}, {parts.names.voice}"
        site = Site(self.house, self.port, PageFacts(tuple(_described()), names), self._switch)
        config = uvicorn.Config(
            site.app,
            log_level="error",
            access_log=False,
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            ws_ping_interval=10.0,
            ws_ping_timeout=20.0,
            timeout_graceful_shutdown=2,
        )
        self.server = uvicorn.Server(config)

    def address(self) -> str:
        """The address to open, with the token of the moment."""
        return f"http://127.0.0.1:{self.port}/?token={self.house.token}"

    def run(self) -> None:
        """Serve until interrupted."""
        try:
            self.server.run(sockets=[self._listener])
        finally:
            self.house.close()

    def _begin(self, front: FrontEnd) -> LiveSession:
        try:
            persona = load_persona(self._reference)
        except PersonaError:  # broken since the page was opened
            persona = self._persona
        session = LiveSession(
            lambda wiring: converse(
                self._parts,
                persona,
                wiring.workers,
                wiring.clock,
                wiring.on_event,
                wiring.on_turn,
                wiring.output,
            ),
            front,
        )
        who = LivePersona(session, self._reference, persona, lambda persona: character(self._parts, persona))
        self._speaking[session] = who
        session.start()
        who.begin()
        return session

    def _switch(self, place: Place, name: str) -> None:
        try:
            if name not in known_personas():  # the page names personas, never files
                raise MessageError(f"there is no persona '{name}'; there are {', '.join(known_personas())}.")
            self._speaking[place.session].become(name)
        except PersonaError as error:
            raise MessageError(str(error)) from error
        place.persona = name


def _described() -> Iterable[tuple[str, str]]:
    for name in known_personas():
        try:
            yield name, load_persona(name).description
        except PersonaError:
            continue  # a broken file of the user's must not keep the page from opening; picking it would say why


def run(request: WebRequest) -> None:
    """Serve until Ctrl-C. Raises one-line errors for a bad port, persona or setting before any model is loaded."""
    persona = load_persona(request.persona)
    settings = parse_settings(request.overrides)
    if settings.echo_canceller is CancellerKind.AUTO:  # the browser has one, and two do not get on
        settings = replace(settings, echo_canceller=CancellerKind.OFF)
    paths = default_paths(persona, settings)
    listener = bind(request.port)
    print("crosstalk: loading", file=sys.stderr)
    parts = load(paths, settings)
    try:
        service = WebService(parts, persona, request, listener)
        _announce(service)
        if request.open_browser:
            _open(service.address())
        if sys.stdin.isatty():
            threading.Thread(target=_new_addresses, args=(service,), name="crosstalk-keys", daemon=True).start()
        service.run()
    finally:
        listener.close()
        parts.close()


def _announce(service: WebService) -> None:
    print(f"Open this address (it works once):\n\n    {service.address()}\n", flush=True)
    hint = "Enter: a new address. " if sys.stdin.isatty() else ""
    print(f"{hint}Ctrl-C: end.", file=sys.stderr, flush=True)


def _new_addresses(service: WebService) -> None:
    while not service.server.should_exit:
        if select.select([sys.stdin], [], [], 0.5)[0]:
            if not sys.stdin.readline():
                return
            service.house.new_token()
            print(f"    {service.address()}\n", flush=True)


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print("crosstalk: no browser could be opened; open the address yourself", file=sys.stderr)
