"""One conversation at the desk: models, devices and persona put together; the screens only show it and pass keys on."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.audio.sound_card import DeviceEvent, SoundCard
from assistant.build import Parts, character, converse
from assistant.chat.desks import QuietDesk, SpeakerDesk
from assistant.conversation.conversation import Character, Conversation
from assistant.desk import Desk
from assistant.live import FrontEnd, LiveSession, Wiring
from assistant.personas import Persona
from assistant.personas.live import LivePersona
from assistant.timeline.events import EventType

Device = str | int | None
"""A name or number of `crosstalk devices`; None: the system's default."""


@dataclass(frozen=True)
class Means:
    """How the two sides talk to each other."""

    typed: bool = False
    """The user types; no microphone is opened."""
    silent: bool = False
    """Answers are only shown."""


class Chat:
    """A running conversation. Methods may be called from any thread."""

    def __init__(
        self,
        parts: Parts,
        persona: Persona,
        means: Means,
        microphone: Device,
        speaker: Device,
        reference: str | None = None,
    ) -> None:
        """`reference`: the name or file that `persona` was loaded by, if it is not its own name."""
        self._parts = parts
        self._means = means
        self.devices: tuple[Device, Device] = (microphone, speaker)
        self.session = LiveSession(self._converse)
        self._who = LivePersona(self.session, reference or persona.name, persona, self._character)
        self._sound: Desk | QuietDesk = QuietDesk()

    @property
    def persona(self) -> Persona:
        """Who speaks, from the next turn on at the latest."""
        return self._who.persona

    @property
    def names(self) -> str:
        """What listens, thinks and speaks."""
        names = self._parts.names
        return f"{names.asr}, {names.llm}, {names.voice}"

    @property
    def means(self) -> Means:
        """How the two sides talk to each other."""
        return self._means

    def start(self, front: FrontEnd) -> None:
        """Open the devices (DeviceError if there are none) and begin."""
        self.session.attach(front)
        self.session.start()
        self.session.wait_until_ready()
        self._open(*self.devices)
        self._who.begin()

    def close(self) -> None:
        """End: the conversation first, so that its last word is counted right."""
        self.session.close()
        self._sound.close()

    def become(self, name: str) -> None:
        """Another persona speaks from the next turn on. PersonaError names what there is."""
        self._who.become(name)

    def _character(self, persona: Persona) -> Character:
        return character(self._parts, persona, silent=self._means.silent)

    def use(self, microphone: Device, speaker: Device) -> None:
        """Other devices from now on. DeviceError if they do not open: then the ones before are opened again."""
        before = self.devices
        self._shut()
        try:
            self._open(microphone, speaker)
        except Exception:
            self._open(*before)
            raise

    def _converse(self, wiring: Wiring) -> Conversation:
        return converse(
            self._parts,
            self.persona,
            wiring.workers,
            wiring.clock,
            wiring.on_event,
            wiring.on_turn,
            wiring.output,
            silent=self._means.silent,
        )

    def _open(self, microphone: Device, speaker: Device) -> None:
        sound: Desk | QuietDesk
        if not self._means.typed:
            sound = Desk(SoundCard(microphone, speaker, self._on_device))
        elif self._means.silent:
            sound = QuietDesk()
        else:
            sound = SpeakerDesk(speaker)
        sound.run(self.session)
        self.session.attach(sound)
        self._sound = sound
        self.devices = (microphone, speaker)

    def _shut(self) -> None:
        self.session.detach(self._sound)
        self._sound.close()

    def _on_device(self, event: DeviceEvent) -> None:
        self.session.tell(EventType.DEVICE, event.text)
