"""The app: what happens in the conversation is shown, keys become wishes. It works from 40 columns and 12 lines on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, Static

from assistant.audio.devices import Device, list_devices
from assistant.chat.chat import Chat, Means
from assistant.chat.chat import Device as DeviceName
from assistant.live import FrontEnd, LiveSession, Status
from assistant.personas import Persona, known_personas
from assistant.timeline.events import Event, Turn
from assistant.transcript import Transcript, as_text
from assistant.tui.choose import Choose
from assistant.tui.widgets import BAD, FLOOR, SOFT, LastTurn, Meters, Words

KEYS = "m mute  p push-to-talk  space talk  s stop  t type  r persona  d devices  c copy  q quit"
SHORT_KEYS = "m mute  p push  spc talk  s stop  t type  r persona  d devices  c copy  q quit"
NARROW = 64
"""Columns below which the words have the screen to themselves."""


class Conversing(Protocol):
    """What the app needs of `assistant.chat.chat.Chat`."""

    devices: tuple[DeviceName, DeviceName]
    session: LiveSession

    @property
    def persona(self) -> Persona:
        """See `Chat.persona`."""

    @property
    def names(self) -> str:
        """See `Chat.names`."""

    @property
    def means(self) -> Means:
        """See `Chat.means`."""

    def become(self, name: str) -> None:
        """See `Chat.become`."""

    def use(self, microphone: DeviceName, speaker: DeviceName) -> None:
        """See `Chat.use`."""


class Happened(Message):
    """Something came from the conversation's thread."""

    def __init__(self, what: Event | Turn | Status) -> None:
        super().__init__()
        self.what = what


class Bridge(FrontEnd):
    """Carries what happens over to the app's thread; keeps it until there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Message] = []
        self._app: Callable[[Message], object] | None = None

    def connect(self, post: Callable[[Message], object]) -> None:
        """The app is there."""
        with self._lock:
            self._app = post
            for message in self._waiting:
                post(message)
            self._waiting.clear()

    def _post(self, message: Message) -> None:
        with self._lock:
            if self._app is None:
                self._waiting.append(message)
            else:
                self._app(message)

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        self._post(Happened(event))

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._post(Happened(turn))

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        self._post(Happened(status))


class ChatApp(App[None]):
    """One conversation, full screen."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "Crosstalk"
    BINDINGS = [
        Binding("m", "mute", "Mute"),
        Binding("p", "push", "Push to talk"),
        Binding("space", "talk", "Talk"),
        Binding("s,escape", "stop", "Stop"),
        Binding("t,slash", "type", "Type"),
        Binding("r", "persona", "Persona"),
        Binding("d", "devices", "Devices"),
        Binding("c", "copy", "Copy"),
        Binding("q,ctrl+c", "quit", "Quit", priority=False),
    ]

    def __init__(self, chat: Conversing) -> None:
        super().__init__()
        self._chat = chat
        self._transcript = Transcript()
        self._status: Status | None = None
        self.front = Bridge()

    def compose(self) -> ComposeResult:
        """See Textual."""
        with Horizontal(id="top"):
            yield Static(id="title")
            yield Static(id="floor")
        with Horizontal(id="middle"):
            yield Words()
            with Vertical(id="side"):
                yield Meters()
                yield LastTurn(Text("no turn yet", style=SOFT))
                yield Static(self._chat.names.replace(", ", "\n"), id="models", markup=False)
        yield Input(placeholder="Enter says it, Escape closes", id="say")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """See Textual."""
        self.query_one(Words).focus()
        self._show_title()
        self.front.connect(self.post_message)
        if self._chat.means.typed:
            self.action_type()

    def on_resize(self, event: Resize) -> None:
        """See Textual."""
        self.set_class(event.size.width < NARROW, "narrow")
        self.query_one("#keys", Static).update(KEYS if event.size.width >= len(KEYS) + 2 else SHORT_KEYS)

    # --- what happens -----------------------------------------------------------------------------------------

    def on_happened(self, message: Happened) -> None:
        """Show it."""
        what = message.what
        if isinstance(what, Status):
            self._status = what
            self.query_one(Meters).show_status(what)
            self._show_floor(what)
            return
        lines = self._transcript.event(what) if isinstance(what, Event) else self._transcript.turn(what)
        for line in lines:
            self.query_one(Words).show_line(line)
        if isinstance(what, Turn):
            self.query_one(LastTurn).show_turn(what)

    def _show_title(self) -> None:
        persona = self._chat.persona
        self.query_one("#title", Static).update(
            Text.assemble(("Crosstalk", "bold"), (f"  {persona.name}, {persona.voice.name}", SOFT))
        )

    def _show_floor(self, status: Status) -> None:
        words, colour = FLOOR[status.phase]
        if status.muted:
            words, colour = "muted", BAD
        elif status.push_to_talk:
            words = f"{words}, talking" if status.talking else f"{words}, space to talk"
        self.query_one("#floor", Static).update(Text.assemble(("● ", colour), words))

    # --- what is pressed --------------------------------------------------------------------------------------

    def action_mute(self) -> None:
        """Hear nothing, or hear again."""
        self._chat.session.mute(not (self._status is not None and self._status.muted))

    def action_push(self) -> None:
        """Push-to-talk on or off."""
        self._chat.session.push_to_talk(not (self._status is not None and self._status.push_to_talk))

    def action_talk(self) -> None:
        """Push-to-talk: begin, and when pressed again, end. A terminal does not say when a key goes up."""
        if self._status is not None and self._status.push_to_talk:
            self._chat.session.talk(not self._status.talking)

    def action_stop(self) -> None:
        """Escape leaves the text box first; then the assistant is silent."""
        say = self.query_one("#say", Input)
        if say.has_focus and not self._chat.means.typed:
            say.remove_class("open")
            self.query_one(Words).focus()
            return
        self._chat.session.stop()

    def action_type(self) -> None:
        """Open the text box."""
        say = self.query_one("#say", Input)
        say.add_class("open")
        say.focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """What was typed is the user's turn."""
        self._chat.session.say(message.value)
        message.input.clear()

    def action_copy(self) -> None:
        """The transcript to the clipboard, through the terminal."""
        self.copy_to_clipboard(as_text(self._transcript.lines))
        self.notify("The transcript is in the clipboard, if the terminal allows it.")

    @work
    async def action_persona(self) -> None:
        """Pick who speaks."""
        names = known_personas()
        here = names.index(self._chat.persona.name) if self._chat.persona.name in names else 0
        picked = await self.push_screen_wait(Choose("Who speaks from the next turn on?", names, here))
        if picked is None:
            return
        try:
            self._chat.become(names[picked])
        except Exception as error:
            self.notify(str(error), severity="error", markup=False)
        self._show_title()

    @work
    async def action_devices(self) -> None:
        """Pick the microphone, then the speaker."""
        try:
            devices = list_devices()
        except Exception as error:
            self.notify(str(error), severity="error", markup=False)
            return
        microphone, speaker = self._chat.devices
        if not self._chat.means.typed:
            picked = await self._pick("Microphone", [d for d in devices if d.inputs])
            if picked is None:
                return
            microphone = picked[0]
        picked = await self._pick("Speaker", [d for d in devices if d.outputs])
        if picked is not None:
            self._use(microphone, picked[0])

    async def _pick(self, what: str, devices: list[Device]) -> tuple[DeviceName] | None:
        names = ["the system's default", *(f"{device.index}: {device.name}" for device in devices)]
        picked = await self.push_screen_wait(Choose(what, names))
        if picked is None:
            return None
        return (None,) if picked == 0 else (devices[picked - 1].index,)

    @work(thread=True, exclusive=True)
    def _use(self, microphone: DeviceName, speaker: DeviceName) -> None:
        try:
            self._chat.use(microphone, speaker)
        except Exception as error:
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)


def run_app(chat: Chat) -> None:
    """Talk, full screen, until the user quits. DeviceError comes before the screen is taken."""
    app = ChatApp(chat)
    try:
        chat.start(app.front)
        app.run()
    finally:
        chat.close()
