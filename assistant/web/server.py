"""The page's server: one address that needs the printed token, static files, one socket.

It listens on this machine only, and believes nobody else's pages: the Host header must be its own (a name that an
attacker lets point to 127.0.0.1 is refused), the socket's Origin too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from assistant.web import messages
from assistant.web.client import TAKEN_OVER, Client
from assistant.web.house import House, Place, Refusal

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
REFUSED = 4003
"""Close code: no such visitor."""

REFUSALS = {
    Refusal.UNKNOWN: (
        403,
        "This address does not open the page.",
        "An address can be used once. In the terminal where <code>crosstalk web</code> runs, press Enter: it prints a "
        "new one.",
    ),
    Refusal.FULL: (
        503,
        "Every place is taken.",
        "Close another page first, or start <code>crosstalk web --sessions</code> with a higher number.",
    ),
}


@dataclass(frozen=True)
class PageFacts:
    """What the page shows about the assistant."""

    personas: tuple[tuple[str, str], ...]
    """Name and description of each."""
    models: str


class Site:
    """The routes. `switch(place, name)` changes a place's persona, or raises MessageError."""

    def __init__(self, house: House, port: int, facts: PageFacts, switch: Callable[[Place, str], None]) -> None:
        self._house = house
        self._facts = facts
        self._switch = switch
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._cookie = f"crosstalk_{port}"  # cookies know no ports: two servers must not take each other's
        sockets = " ".join(f"ws://{host}" for host in sorted(self._hosts))
        self._headers = {
            "Content-Security-Policy": f"default-src 'self'; connect-src 'self' {sockets}; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name}", self._static),
                WebSocketRoute("/talk", self._talk),
            ]
        )

    async def _page(self, request: Request) -> Response:
        if (wrong := self._wrong_host(request)) is not None:
            return wrong
        known = self._house.place(request.cookies.get(self._cookie, ""))
        if (token := request.query_params.get("token")) is not None and known is None:
            admitted = self._house.admit(token)
            if isinstance(admitted, Refusal):
                return self._refuse(admitted)
            response = RedirectResponse("/", status_code=303, headers=self._headers)
            response.set_cookie(self._cookie, admitted, httponly=True, samesite="strict", path="/")
            return response
        if known is None:
            return self._refuse(Refusal.UNKNOWN)
        if token is not None:  # the token is not left in the address bar
            return RedirectResponse("/", status_code=303, headers=self._headers)
        return FileResponse(STATIC / "index.html", headers=self._headers)

    async def _static(self, request: Request) -> Response:
        if (wrong := self._wrong_host(request)) is not None:
            return wrong
        path = STATIC / Path(request.path_params["name"]).name
        if path.suffix not in KINDS or not path.is_file():
            return Response("There is no such file.", status_code=404, headers=self._headers)
        return FileResponse(path, media_type=KINDS[path.suffix], headers=self._headers)

    def _wrong_host(self, request: Request) -> Response | None:
        if request.headers.get("host") in self._hosts:
            return None
        return Response("This server answers to 127.0.0.1 only.", status_code=421, headers=self._headers)

    def _refuse(self, refusal: Refusal) -> Response:
        status, title, advice = REFUSALS[refusal]
        body = (
            f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<link rel=stylesheet href=/static/style.css><title>Crosstalk</title>"
            f"<main class=refused><h1>{title}</h1><p>{advice}</p></main></html>"
        )
        return HTMLResponse(body, status_code=status, headers=self._headers)

    async def _talk(self, socket: WebSocket) -> None:
        if socket.headers.get("origin") not in self._origins or socket.headers.get("host") not in self._hosts:
            await socket.close(REFUSED, "not this page's own address")  # before accept: the answer is HTTP 403
            return
        place = self._house.place(socket.cookies.get(self._cookie, ""))
        await socket.accept()
        if place is None:
            await socket.close(REFUSED, "open the address that crosstalk web printed")
            return
        await self._serve(socket, place)

    async def _serve(self, socket: WebSocket, place: Place) -> None:
        client = Client(socket, place.session, lambda name: self._switch(place, name))
        if isinstance(place.client, Client):
            place.client.close(TAKEN_OVER, "the conversation goes on in another tab")
            place.session.detach(place.client)
        place.client = client

        def greet() -> None:
            client.send(self._hello(place))
            place.memory.show = client.send

        # In this order on the conversation's thread: nothing is missed between the snapshot and what follows it.
        place.session.run(greet)
        place.session.attach(client)
        try:
            await client.run()
        finally:

            def silence() -> None:
                if place.memory.show == client.send:
                    place.memory.show = None

            place.session.run(silence)
            place.session.detach(client)
            self._house.leave(place, client)

    def _hello(self, place: Place) -> str:
        return messages.write(
            "hello",
            persona=place.persona,
            personas=[{"name": name, "about": about} for name, about in self._facts.personas],
            models=self._facts.models,
            **place.memory.snapshot(),
        )
