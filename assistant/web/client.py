"""One connected page: what it sends goes to its conversation, what happens there goes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket

from assistant.audio.constants import PLAYBACK_FRAME
from assistant.live import FrontEnd, LiveSession, Status
from assistant.timeline.events import Event, EventType, Turn
from assistant.web import messages
from assistant.web.budget import Budget
from assistant.web.messages import Kind, MessageError, Request

POLICY = 1008
"""Close code: the client broke a rule."""
TAKEN_OVER = 4001
"""Close code: the conversation goes on in a newer page."""
TOO_SLOW = 4002
"""Close code: the page does not take in what it is sent."""

LONGEST_QUEUE = 400
"""Messages that may wait for a slow page: about five seconds of sound."""
MOST_MISTAKES = 10
GOODBYE = 5.0
"""Seconds that a page has to take in why it is sent away."""


class Client(FrontEnd):
    """A page on its socket. `FrontEnd` methods run on the conversation's thread, the others on the server's."""

    def __init__(
        self,
        socket: WebSocket,
        session: LiveSession,
        switch: Callable[[str], None],
    ) -> None:
        """`switch(name)` changes the persona; it raises MessageError for one that is not there."""
        self._socket = socket
        self._session = session
        self._switch = switch
        self._loop = asyncio.get_running_loop()
        self._out: asyncio.Queue[str | bytes | tuple[int, str]] = asyncio.Queue()
        self._given = 0
        """Samples sent to be played, counted on the conversation's thread."""
        self._frames = Budget(burst=150, rate=75)
        self._requests = Budget(burst=40, rate=10)
        self._mistakes = 0
        self._closing = False

    # --- conversation's thread --------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        if event.type is not EventType.PARTIAL:
            self._send(messages.write("event", **messages.event_data(event)))

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._send(messages.write("turn", **messages.turn_data(turn)))

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        self._send(messages.write("status", **messages.status_data(status)))

    def sound(self, frame: NDArray[np.float32]) -> None:
        """See `FrontEnd.sound`."""
        self._given += PLAYBACK_FRAME
        self._send(messages.write_frame(frame))

    def drop(self) -> None:
        """See `FrontEnd.drop`."""
        self._send(messages.write("drop"))

    def send(self, message: str) -> None:
        """Queue a message (any thread)."""
        self._send(message)

    def _send(self, message: str | bytes) -> None:
        self._loop.call_soon_threadsafe(self._queue, message)

    def _delay(self, played: int) -> int:
        """Samples that were sent and not played, when `played` were, modulo 2^32."""
        behind = (self._given - played) % 2**32
        return 0 if behind >= 2**31 else behind

    # --- server's thread --------------------------------------------------------------------------------------

    def _queue(self, message: str | bytes) -> None:
        if self._out.qsize() < LONGEST_QUEUE:
            self._out.put_nowait(message)
        elif not self._closing:
            self.close(TOO_SLOW, "this page does not keep up with the sound")

    def close(self, code: int, reason: str) -> None:
        """Say why and hang up, once what is queued has been sent."""
        self._closing = True
        self._out.put_nowait((code, reason))

    async def run(self) -> None:
        """Serve the page until it goes or is sent away."""
        sending = asyncio.create_task(self._write())
        reading = asyncio.create_task(self._read())
        await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
        if self._closing:
            await asyncio.wait({sending}, timeout=GOODBYE)
        for task in (sending, reading):
            task.cancel()
        await asyncio.gather(sending, reading, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            message = await self._out.get()
            if isinstance(message, tuple):
                await self._socket.close(*message)
                return
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_text(message)

    async def _read(self) -> None:
        while not self._closing:
            received = await self._socket.receive()
            if received["type"] == "websocket.disconnect":
                return
            try:
                self._take(received)
            except MessageError as error:
                self._mistakes += 1
                self._queue(messages.write("error", text=str(error)))
                if self._mistakes > MOST_MISTAKES:
                    self.close(POLICY, "too many messages that are none")

    def _take(self, received: Mapping[str, Any]) -> None:
        if (data := received.get("bytes")) is not None:
            if not self._frames.take():
                raise MessageError("sound comes faster than it can be spoken.")
            frame = messages.read_frame(data)
            self._session.frame(frame.pcm, lambda: self._delay(frame.played))
            return
        if not self._requests.take():
            raise MessageError("too many messages at once.")
        self._do(messages.read_request(received.get("text") or ""))

    def _do(self, request: Request) -> None:
        match request.kind:
            case Kind.SAY:
                self._session.say(request.text)
            case Kind.STOP:
                self._session.stop()
            case Kind.MUTE:
                self._session.mute(request.on)
            case Kind.PUSH_TO_TALK:
                self._session.push_to_talk(request.on)
            case Kind.TALK:
                self._session.talk(request.on)
            case Kind.PERSONA:
                self._switch(request.text)
