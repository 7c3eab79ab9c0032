"""Who may come in, and which conversation is whose.

The printed address carries a token. It is good for as many visitors as there are places; each gets a cookie and a
conversation of its own, which stays theirs over reloads, second tabs and lost sockets.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from assistant.live import FrontEnd, LiveSession
from assistant.web.memory import Memory


class Refusal(Enum):
    """Why somebody stays outside."""

    UNKNOWN = "unknown"
    """The token is wrong, or as many have used it as may."""
    FULL = "full"
    """All places are taken by others."""


@dataclass
class Place:
    """One visitor's conversation."""

    session: LiveSession
    memory: Memory
    persona: str
    cookies: set[str] = field(default_factory=set)
    client: object | None = None
    """The connected page, if there is one: a newer one takes over."""
    left_at: float = 0.0


class House:
    """Tokens, cookies and places. Use from one thread."""

    def __init__(
        self,
        begin: Callable[[FrontEnd], LiveSession],
        persona: str,
        places: int = 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begin(front)` starts a conversation that `front` watches from its beginning."""
        self._begin = begin
        self._persona = persona
        self._limit = places
        self._monotonic = monotonic
        self._places: list[Place] = []
        self._token = ""
        self._uses = 0
        self.new_token()

    def new_token(self) -> str:
        """A fresh token for the address; the one before is void."""
        self._token, self._uses = secrets.token_urlsafe(24), self._limit
        return self._token

    @property
    def token(self) -> str:
        """The token for the address."""
        return self._token

    def admit(self, token: str) -> str | Refusal:
        """A cookie for a visitor who brings the token."""
        if not secrets.compare_digest(token.encode(), self._token.encode()) or self._uses < 1:
            return Refusal.UNKNOWN
        place = self._free_place()
        if place is None:
            return Refusal.FULL
        self._uses -= 1
        cookie = secrets.token_urlsafe(24)
        place.cookies.add(cookie)
        return cookie

    def place(self, cookie: str) -> Place | None:
        """The place that a cookie opens."""
        for place in self._places:
            if any(secrets.compare_digest(cookie.encode(), known.encode()) for known in place.cookies):
                return place
        return None

    def leave(self, place: Place, client: object) -> None:
        """`client` has gone; the conversation waits."""
        if place.client is client:
            place.client = None
            place.left_at = self._monotonic()

    def close(self) -> None:
        """End all conversations."""
        for place in self._places:
            place.session.close()
        self._places.clear()

    def _free_place(self) -> Place | None:
        if len(self._places) < self._limit:
            place = self._new_place()
            self._places.append(place)
            return place
        if self._limit == 1:
            # The same person in another browser: they go on with their own conversation.
            return self._places[0]
        vacant = [place for place in self._places if place.client is None]
        if not vacant:
            return None
        longest = min(vacant, key=lambda place: place.left_at)
        longest.session.close()
        place = self._new_place()
        self._places[self._places.index(longest)] = place
        return place

    def _new_place(self) -> Place:
        memory = Memory()
        return Place(self._begin(memory), memory, self._persona, left_at=self._monotonic())
