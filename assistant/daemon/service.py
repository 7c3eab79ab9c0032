"""The service: one conversation, and everything that watches, controls and keeps it.

    DaemonSound ─ frame ─► Ears (wake word) ─ frame ─► LiveSession ─► sound, event, turn, status ─► front ends:
                                                                      DaemonSound, Journal, Memory, Metrics, Hooks, ...
    ControlServer ─ request ─► commands ─► Service            main thread: watchdog, saving, the end
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from assistant import __version__
from assistant.audio.sound_card import DeviceEvent
from assistant.build import Parts, character, converse
from assistant.conversation.conversation import Conversation
from assistant.daemon.config import DaemonConfig, load_config
from assistant.daemon.control import ControlServer
from assistant.daemon.ears import Ears
from assistant.daemon.hooks import Hooks
from assistant.daemon.http import Monitor
from assistant.daemon.journal import Journal
from assistant.daemon.log import Log
from assistant.daemon.memory import Memory
from assistant.daemon.metrics import Metrics
from assistant.daemon.notify import Notifier
from assistant.daemon.sayings import Sayings
from assistant.daemon.sound import DaemonSound
from assistant.errors import CrosstalkError
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession, Status, Wiring
from assistant.personas import Persona, load_persona
from assistant.personas.watch import PersonaFiles
from assistant.timeline.events import EventType, Turn
from engine import SavedSessionError

LOOK_EVERY = 0.5
HUNG_AFTER = 10.0
"""Seconds without a sign of the conversation's thread from which the daemon is not healthy."""


class Service(FrontEnd):
    """A running daemon. `run` blocks until the end; everything else may be called from any thread."""

    def __init__(
        self,
        config: DaemonConfig,
        file: Path | None,
        overrides: tuple[str, ...],
        parts: Parts,
        persona: Persona,
        folder: Path,
        ears: Ears,
        log: Log,
        notifier: Notifier,
    ) -> None:
        """`file` and `overrides`: what `config` was read from, for `reload`. `folder`: for what is kept."""
        self.config = config
        self._source = (file, overrides)
        self._parts = parts
        self._persona = persona
        self._persona_files = PersonaFiles(config.persona)
        self._log = log
        self._notifier = notifier
        self._ending = threading.Event()
        self._reload_wanted = False
        self._why = ""
        self._started = time.monotonic()
        self._beat = time.monotonic()
        self._status = Status(0.0, Phase.LISTENING)
        self._turns = 0
        self.devices = DaemonSound(config.audio, self._on_device)
        self.memory = Memory(folder, config.keep, log)
        self.journal = Journal(folder, config.privacy, log)
        self.metrics = Metrics(lambda: parts.engine.stats, lambda: self.devices.stats)
        self.hooks = Hooks(config.hooks, log)
        self.sayings = Sayings()
        self.ears = ears
        fronts = (self.devices, self, self.ears, self.journal, self.memory, self.metrics, self.hooks, self.sayings)
        self.session = LiveSession(self._converse, *fronts)
        self.sayings.use(self.session)
        self.ears.use(self.session)

    # --- the life of it ---------------------------------------------------------------------------------------

    def run(self, control: ControlServer, monitor: Monitor | None) -> None:
        """Talk until `end` is called."""
        try:
            self.session.start()
            self.session.wait_until_ready()
            self.devices.run(self._frame)
            control.start()
            if monitor is not None:
                monitor.start()
            self._log.info("ready", version=__version__, persona=self.persona_name, socket=control.path)
            self._notifier.ready(self._state())
            self._stay()
        finally:
            self._notifier.stopping()
            control.close()
            if monitor is not None:
                monitor.close()
            self._close()

    def _stay(self) -> None:
        every = min(LOOK_EVERY, self._notifier.watchdog / 3) if self._notifier.watchdog else LOOK_EVERY
        told = self._state()
        while not self._ending.wait(every):
            self.session.run(self._sign)
            if self.healthy:
                self._notifier.alive()
            if self._reload_wanted:
                self._reload_wanted = False
                self._reload_or_say()
            self._follow_files()
            if self.memory.due:
                self._save_quietly()
            if (now := self._state()) != told:
                self._notifier.status(now)
                told = now

    def _close(self) -> None:
        self._log.info("ending", why=self._why or "an error")
        self.session.stop()
        self.memory.finish(self.session)
        self.session.close()
        self.devices.close()
        self.hooks.close()
        self.journal.close()
        self._log.info("ended")

    def end(self, why: str) -> None:
        """Save, and leave."""
        self._why = self._why or why
        self._ending.set()

    def ask_for_reload(self) -> None:
        """Read the config again soon: for a signal handler."""
        self._reload_wanted = True

    # --- what goes through it ---------------------------------------------------------------------------------

    def _converse(self, wiring: Wiring) -> Conversation:
        kept = self.memory.load(self._parts)
        return converse(
            self._parts,
            self._persona,
            wiring.workers,
            wiring.clock,
            wiring.on_event,
            wiring.on_turn,
            wiring.output,
            kept=kept,
        )

    def _frame(self, frame: Any, delay: Any) -> None:
        for heard in self.ears.hear(frame, muted=self._status.muted):
            self.journal.heard(heard)
            self.session.frame(heard, delay)

    def _on_device(self, event: DeviceEvent) -> None:
        self.session.tell(EventType.DEVICE, event.text)

    def _sign(self) -> None:
        self._beat = time.monotonic()

    def _save_quietly(self) -> None:
        try:
            self._log.info("conversation-saved", tokens=self.memory.save(self.session))
        except SavedSessionError as error:
            self._log.error("not-saved", why=str(error))

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        self._turns = max(self._turns, turn.index + 1)

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        self._status = status

    # --- what others may do -----------------------------------------------------------------------------------

    @property
    def healthy(self) -> bool:
        """Whether the conversation's thread answers. A box without a microphone is waiting, not ill."""
        return time.monotonic() - self._beat < HUNG_AFTER

    @property
    def persona_name(self) -> str:
        """Who speaks."""
        return self._persona.name

    def mute(self, muted: bool) -> None:
        """Hear nothing, or hear again."""
        self.session.mute(muted)

    def become(self, name: str) -> None:
        """Another persona from the next turn on. PersonaError."""
        self._become(load_persona(name))
        self._persona_files = PersonaFiles(name)

    def _follow_files(self) -> None:
        """A persona's file that was changed counts from the next turn on; a broken one changes nothing."""
        try:
            if (persona := self._persona_files.poll()) is not None:
                self._become(persona)
        except CrosstalkError as error:
            self._log.error("persona", why=" ".join(str(error).split()))

    def _become(self, persona: Persona) -> None:
        who = character(self._parts, persona)
        self._persona = persona
        self.session.call(lambda conversation: conversation.become(who))

    def _state(self) -> str:
        if self.devices.waiting:
            return f"waiting for sound: {self.devices.waiting}"
        if self._status.muted:
            return "muted"
        return "waiting for the wake word" if self.ears.asleep else self._status.phase.value

    def status_report(self) -> dict[str, Any]:
        """How things stand, without a word of what was said."""
        engine, sound = self._parts.engine.stats, self.devices.stats
        microphone, speaker = self.devices.names
        return {
            "version": __version__,
            "pid": os.getpid(),
            "state": self._state(),
            "phase": self._status.phase.value,
            "muted": self._status.muted,
            "asleep": self.ears.asleep,
            "waiting_for": self.devices.waiting,
            "persona": self.persona_name,
            "models": vars(self._parts.names),
            "microphone": microphone,
            "speaker": speaker,
            "seconds": round(time.monotonic() - self._started, 1),
            "audio_seconds": round(self._status.t, 2),
            "turns": self._turns,
            "saved_tokens": self.memory.saved_tokens,
            "engine": {
                "rows": engine.rows,
                "held": sum(pool.held for pool in engine.pools),
                "pages": sum(pool.pages for pool in engine.pools),
            },
            "sound": {
                "lost": sound.lost,
                "input_xruns": sound.input_xruns,
                "output_xruns": sound.output_xruns,
                "underflows": sound.underflows,
            },
            "hooks": {"failed": self.hooks.failed, "dropped": self.hooks.dropped},
        }

    def health(self) -> dict[str, Any]:
        """What /healthz answers."""
        return {"ok": self.healthy, "state": self._state()}

    def reload(self) -> dict[str, Any]:
        """Read the config again: what can change at once does, the rest is named. SettingsError changes nothing."""
        fresh = load_config(*self._source)
        if fresh.persona != self.config.persona:
            self.become(fresh.persona)
        before, self.config = self.config, fresh
        changed = [name for name in vars(fresh) if getattr(fresh, name) != getattr(before, name)]
        self._log.use(fresh.log)
        self.hooks.use(fresh.hooks)
        self.journal.use(fresh.privacy)
        self.memory.choice = fresh.keep
        self.devices.use(fresh.audio)
        live = {"log", "hooks", "privacy", "keep", "audio", "persona"}
        later = [name for name in changed if name not in live]
        self._log.info("reloaded", changed=",".join(changed) or "nothing", later=",".join(later) or "nothing")
        return {"changed": [name for name in changed if name in live], "needs_restart": later}

    def _reload_or_say(self) -> None:
        self._notifier.reloading()
        try:
            self.reload()
        except Exception as error:  # a broken file: the daemon goes on with what it has
            self._log.error("not-reloaded", why=" ".join(str(error).split()))
        self._notifier.ready(self._state())
