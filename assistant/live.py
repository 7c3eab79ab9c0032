"""A conversation that is alive: frames come in from a microphone of any kind, sound goes out, people press keys.

    microphone ──frame──►┌───────┐   one thread,        ┌──► sound (480 samples a frame), drop
    lanes ──────deliver─►│ inbox │──►  owns the    ────► FrontEnd ──► event, turn
    keys ─────── job ───►└───────┘   conversation       └──► status (ten times a second)

Everything that may happen is a job in one inbox, so the conversation has one owner and no locks. The audio clock is the
count of frames received: while none come (a lost socket, a suspended machine) no time passes, and the conversation goes
on where it was when they come again. Terminal, page and daemon are front ends of this one loop.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.conversation.conversation import Conversation
from assistant.conversation.workers import ThreadWorkers, Workers
from assistant.floor import Key, Phase
from assistant.player import Output
from assistant.timeline.events import Event, EventType, Turn

STATUS_EVERY = 5
"""Frames between two status reports: ten a second."""


@dataclass(frozen=True)
class Status:
    """How things stand. Levels are one peak in [0, 1] per frame since the last report."""

    t: float
    """Seconds on the audio clock."""
    phase: Phase
    user: tuple[float, ...] = ()
    assistant: tuple[float, ...] = ()
    muted: bool = False
    push_to_talk: bool = False
    talking: bool = False
    """With push-to-talk: the key is down."""
    delay: float = 0.0
    """Seconds from the player to the air."""


class FrontEnd:
    """What shows and plays a conversation. All methods are called on the conversation's thread and must not block."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def turn(self, turn: Turn) -> None:
        """A turn is over, or its record has changed."""

    def status(self, status: Status) -> None:
        """Ten times a second, and at once when the floor changes hands."""

    def sound(self, frame: NDArray[np.float32]) -> None:
        """20 ms to play (`PLAYBACK_FRAME` samples, reused: copy what is kept)."""

    def drop(self) -> None:
        """Forget the sound that is not in the air yet, within a few milliseconds and without a click."""


@dataclass(frozen=True)
class Wiring:
    """What a conversation needs from the loop that it lives in; see `assistant.build.converse`."""

    workers: Workers
    clock: Callable[[], float]
    on_event: Callable[[Event], None]
    on_turn: Callable[[Turn], None]
    output: Output


class FrameClock:
    """Seconds received, and between two frames the time since the last one, at most one frame."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.frames = 0
        self._last: float | None = None

    def tick(self) -> None:
        """A frame is here."""
        self.frames += 1
        self._last = self._monotonic()

    def now(self) -> float:
        """Seconds on the audio clock (any thread)."""
        since = 0.0 if self._last is None else self._monotonic() - self._last
        return (self.frames * FRAME + min(since * SAMPLE_RATE, FRAME)) / SAMPLE_RATE


class LiveSession:
    """One conversation on its own thread. Every method may be called from any thread and returns at once."""

    def __init__(
        self,
        make: Callable[[Wiring], Conversation],
        *fronts: FrontEnd,
        workers: Callable[[Callable[[], None]], Workers] = ThreadWorkers,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` builds the conversation, on the loop's thread. `workers(wake)` makes the lanes."""
        self._make = make
        self._fronts: tuple[FrontEnd, ...] = fronts
        self._failing: list[FrontEnd] = []
        """Front ends that have raised something."""
        self._workers = workers
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._clock = FrameClock(monotonic)
        self._output = Output(drop=self._drop)
        self._conversation: Conversation | None = None
        self._woken = False
        self._muted = self._push_to_talk = self._talking = False
        self._user_levels: list[float] = []
        self._said_levels: list[float] = []
        self._phase = Phase.LISTENING
        self._silence = np.zeros(FRAME, np.float32)
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="crosstalk-live", daemon=True)

    # --- from outside -----------------------------------------------------------------------------------------

    def start(self) -> LiveSession:
        """Begin; frames may be given at once."""
        self._thread.start()
        return self

    def wait_until_ready(self) -> None:
        """Block until the persona's prompt is in the engine; raises what kept it from getting there."""
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def frame(self, microphone: NDArray[np.float32], delay: Callable[[], int] | None = None) -> None:
        """20 ms of the microphone. `delay` is asked, on the conversation's thread, how many of the samples given to
        `FrontEnd.sound` are not in the air yet."""
        self._inbox.put(lambda: self._frame(microphone, delay))

    def attach(self, front: FrontEnd) -> None:
        """`front` hears of everything from now on; first of how things stand."""

        def attached() -> None:
            self._set_fronts((*self._fronts, front))
            self._report()

        self._inbox.put(attached)

    def detach(self, front: FrontEnd) -> None:
        """`front` hears no more."""
        self._inbox.put(lambda: self._set_fronts(tuple(known for known in self._fronts if known is not front)))

    def stop(self) -> None:
        """Be silent now."""
        self._do(lambda conversation: conversation.stop())

    def say(self, text: str) -> None:
        """The user typed `text`."""
        if text.strip():
            self._do(lambda conversation: conversation.say_text(text.strip()))

    def mute(self, muted: bool) -> None:
        """Hear nothing (the clock goes on)."""
        self._inbox.put(lambda: self._set(muted=muted))

    def push_to_talk(self, wanted: bool) -> None:
        """Hear the microphone only while `talk(True)`; the turn is over when that is."""
        self._inbox.put(lambda: self._set(push_to_talk=wanted, talking=False))
        self._do(lambda conversation: conversation.talk_key(Key.UP if wanted else Key.FREE))

    def talk(self, talking: bool) -> None:
        """The push-to-talk key went down or up. Down takes the floor."""
        if talking:
            self.stop()
        self._inbox.put(lambda: self._set(talking=talking))
        self._do(lambda conversation: conversation.talk_key(Key.DOWN if talking else Key.UP))

    def call(self, job: Callable[[Conversation], None]) -> None:
        """Run `job` on the conversation's thread: for what this class has no method for."""
        self._do(job)

    def run(self, job: Callable[[], None]) -> None:
        """Run `job` on the conversation's thread, between what was asked before and what is asked after it."""
        self._inbox.put(job)

    def tell(self, type_: EventType, text: str) -> None:
        """Let the front ends know of something that happened around the conversation."""
        self._inbox.put(lambda: self._on_event(Event(self._clock.now(), type_, text=text)))

    def close(self) -> None:
        """End the conversation and wait for its thread."""
        self._inbox.put(None)
        if self._thread.is_alive():
            self._thread.join()

    # --- on the conversation's thread -------------------------------------------------------------------------

    def _run(self) -> None:
        workers = self._workers(self._wake)
        wiring = Wiring(workers, self._clock.now, self._on_event, self._on_turn, self._output)
        try:
            self._conversation = self._make(wiring)
        except Exception as error:
            self._failure = error
            self._on_event(Event(0.0, EventType.ERROR, reason=str(error)))
        self._ready.set()
        self._report()
        while (job := self._inbox.get()) is not None:
            try:
                job()
            except Exception as error:  # one broken frame must not end a conversation of hours
                self._on_event(Event(self._clock.now(), EventType.ERROR, reason=f"{type(error).__name__}: {error}"))
        if self._conversation is not None:
            self._conversation.close()
        else:
            workers.close()

    def _wake(self) -> None:
        """Work is done on a lane (called there). One job in the inbox takes in any number of results."""
        if not self._woken:
            self._woken = True
            self._inbox.put(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # before the results are taken: one that comes in now must wake again
        if self._conversation is not None:
            self._conversation.deliver()
            self._report_phase()

    def _do(self, job: Callable[[Conversation], None]) -> None:
        def run() -> None:
            if self._conversation is not None:
                job(self._conversation)
                self._report_phase()

        self._inbox.put(run)

    def _frame(self, microphone: NDArray[np.float32], delay: Callable[[], int] | None) -> None:
        if self._conversation is None:
            return
        self._clock.tick()
        if delay is not None:
            self._output.delay = delay()
        deaf = self._muted or (self._push_to_talk and not self._talking)
        heard = self._silence if deaf else microphone
        sound = self._conversation.frame(heard)
        self._tell(lambda front: front.sound(sound))
        self._user_levels.append(float(np.abs(heard).max()))
        self._said_levels.append(float(np.abs(sound).max()))
        if len(self._user_levels) >= STATUS_EVERY:
            self._report()
        else:
            self._report_phase()

    def _set_fronts(self, fronts: tuple[FrontEnd, ...]) -> None:
        self._fronts = fronts
        self._failing = [front for front in self._failing if front in fronts]

    def _set(self, muted: bool | None = None, push_to_talk: bool | None = None, talking: bool | None = None) -> None:
        self._muted = self._muted if muted is None else muted
        self._push_to_talk = self._push_to_talk if push_to_talk is None else push_to_talk
        self._talking = self._talking if talking is None else talking
        self._report()

    def _drop(self) -> None:
        self._tell(lambda front: front.drop())

    def _on_event(self, event: Event) -> None:
        self._tell(lambda front: front.event(event))

    def _on_turn(self, turn: Turn) -> None:
        self._tell(lambda front: front.turn(turn))

    def _tell(self, tell: Callable[[FrontEnd], None]) -> None:
        """A front end that fails (a full disk, a page that is gone) must harm neither the conversation, which may be
        in the middle of a turn, nor the others. They hear of it once."""
        for front in self._fronts:
            try:
                tell(front)
            except Exception as error:
                if front not in self._failing:
                    self._failing.append(front)
                    reason = f"{type(front).__name__}: {type(error).__name__}: {error}"
                    self._on_event(Event(self._clock.now(), EventType.ERROR, reason=reason))

    def _report_phase(self) -> None:
        if self._conversation is not None and self._conversation.phase is not self._phase:
            self._report()

    def _report(self) -> None:
        if self._conversation is not None:
            self._phase = self._conversation.phase
        status = Status(
            t=self._clock.now(),
            phase=self._phase,
            user=tuple(self._user_levels),
            assistant=tuple(self._said_levels),
            muted=self._muted,
            push_to_talk=self._push_to_talk,
            talking=self._talking,
            delay=self._output.delay / PLAYBACK_RATE,
        )
        self._user_levels.clear()
        self._said_levels.clear()
        self._tell(lambda front: front.status(status))
