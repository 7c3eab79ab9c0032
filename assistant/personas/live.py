"""A persona in a live conversation: its greeting and its key at the beginning, its files watched, others in its place.

Terminal, page and daemon do the same with a persona; they do it here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from assistant.conversation.conversation import Character
from assistant.errors import CrosstalkError
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession, Status
from assistant.personas.faults import PersonaError
from assistant.personas.files import load_persona
from assistant.personas.model import Persona
from assistant.personas.watch import PersonaFiles
from assistant.timeline.events import EventType
from voices.errors import VoiceError

LOOK_EVERY = 1.0
"""Seconds on the audio clock between two looks at the files."""


class LivePersona(FrontEnd):
    """Who speaks in one live session. `begin` and `become` may be called from any thread."""

    def __init__(
        self, session: LiveSession, reference: str, persona: Persona, character: Callable[[Persona], Character]
    ) -> None:
        """`reference`: what `persona` was loaded by, a name or a file. `character` gives it a voice and manners."""
        self._session = session
        self._character = character
        self._files = PersonaFiles(reference)
        self._looked = 0.0
        self.persona = persona

    def begin(self) -> None:
        """The conversation begins: its greeting is said, if it has one."""
        persona = self.persona
        if persona.push_to_talk:
            self._session.push_to_talk(True)
        if persona.greeting:
            self._session.call(lambda conversation: conversation.greet(persona.greeting))
        self._session.attach(self)

    def become(self, name: str) -> Persona:
        """Another persona speaks from the next turn on. PersonaError says what is wrong with it."""
        persona = load_persona(name)
        self._files = PersonaFiles(name)
        self._take(persona)
        return persona

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`: while nobody speaks, a changed file is taken in for the next turn."""
        if status.phase is not Phase.LISTENING or status.t - self._looked < LOOK_EVERY:
            return
        self._looked = status.t
        try:
            persona = self._files.poll()
        except PersonaError as error:
            self._session.tell(EventType.ERROR, str(error))
            return
        if persona is None:
            return
        if persona.voice.name == self.persona.voice.name:
            self._take_or_tell(persona)
        else:  # it may have to be loaded, and this thread has a frame to play
            threading.Thread(target=self._take_or_tell, args=(persona,), name="crosstalk-voice", daemon=True).start()

    def _take_or_tell(self, persona: Persona) -> None:
        try:
            self._take(persona)
        except (CrosstalkError, VoiceError) as error:
            self._session.tell(EventType.ERROR, str(error))

    def _take(self, persona: Persona) -> None:
        who = self._character(persona)
        before, self.persona = self.persona, persona
        if before.push_to_talk is not persona.push_to_talk:  # else the user's own choice stays
            self._session.push_to_talk(persona.push_to_talk)
        self._session.call(lambda conversation: conversation.become(who))
