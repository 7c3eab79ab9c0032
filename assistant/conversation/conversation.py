"""The conversation: the thin shell around the floor.

Frames of the microphone go in, frames of the assistant's sound come out, 20 ms each, on one clock. Everything slow is
a job on a lane; its result comes back here, so all state has one owner and no locks. What to do is decided by
`assistant/floor.py`; this file only does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant import floor
from assistant.audio.constants import FRAME, PLAYBACK_RATE
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.interjecting import Interjector, Scorer
from assistant.conversation.listener import Decoded, Listener, Noticed
from assistant.conversation.reply import Mouth
from assistant.conversation.speaking import Speaking, SpeakingSettings
from assistant.conversation.turns import OpenTurn, Prompt, to_seconds
from assistant.conversation.workers import Lane, Workers
from assistant.ears import edges, rise
from assistant.endpoint import Calibration, calibrated
from assistant.floor import Act, Action, FloorRules, FloorState, Phase
from assistant.interjection import InterjectionRules, Reason, SilenceRules
from assistant.overlap import same_words
from assistant.personas import Persona
from assistant.player import Output
from assistant.timeline.events import Event, EventType, Turn
from engine.compaction import Compacted

REST_EVERY = 50 * FRAME
"""Samples between two looks at whether there is something to tidy up (a second), each at the first quiet moment."""


@dataclass(frozen=True)
class ConversationSettings:
    """What may be set about a conversation."""

    floor: FloorRules = FloorRules()
    calibration: Calibration = Calibration()
    speaking: SpeakingSettings = SpeakingSettings()
    draft_above: float = 0.5
    """Probability of a finished turn above which an answer is begun while the user may still be speaking."""
    draft_anyway: int = 6_400
    """Samples of silence after which even unfinished words get a draft (400 ms)."""
    draft_silence: int = 960
    """Samples of silence in which such an answer is begun at once (60 ms); else when two transcripts agree."""
    interjections: InterjectionRules = InterjectionRules()
    silence: SilenceRules = SilenceRules()


@dataclass(frozen=True)
class Character:
    """Who the assistant is: the persona's words, its voice, its manners."""

    persona: Persona
    mouth: Mouth
    settings: ConversationSettings


class Conversation:
    """One user, one assistant. Call from one thread only."""

    def __init__(
        self,
        listener: Listener,
        dialogue: Dialogue,
        workers: Workers,
        clock: Callable[[], float],
        on_event: Callable[[Event], None] = lambda event: None,
        on_turn: Callable[[Turn], None] = lambda turn: None,
        settings: ConversationSettings = ConversationSettings(),
        output: Output | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        """`output`: how far behind the sound is that `frame` gives, kept up to date by who plays it. `scorer` replaces
        the engine's opinion of reasons to cut in."""
        self._listener = listener
        self._dialogue = dialogue
        self._workers = workers
        self._clock = clock
        self._on_event = on_event
        self._settings = settings
        self._speaking = Speaking(dialogue, workers, self._emit, on_turn, output or Output(), settings.speaking)
        self._player = self._speaking.player
        self._state = FloorState()
        self._t = 0
        """Samples of the microphone that came in."""
        self._interjector = Interjector(dialogue, workers, settings.interjections, scorer)
        self._quiet_since = 0
        """Sample since which nobody has spoken."""
        self._rested_at = 0
        """Sample at which something to tidy up was last looked for."""
        self._prompted = 0
        """Silences broken since the user last spoke."""
        self._transcribed_at = 0.0
        self._listening_to = ""
        self._agreed = False
        """The last two transcripts have the same words."""
        self._stable = ""
        """The part of the open utterance's words that is not expected to change."""
        self._next: Character | None = None
        """Who speaks from the next turn on."""

    # --- what goes on outside ---------------------------------------------------------------------------------

    @property
    def _turn(self) -> OpenTurn | None:
        return self._speaking.turn

    @property
    def phase(self) -> Phase:
        """Who has the floor."""
        return self._state.phase

    @property
    def idle(self) -> bool:
        """Whether nothing is being said, understood or made."""
        return self._state.phase is Phase.LISTENING and not self._player.active and not self._listener.busy

    @property
    def playing(self) -> bool:
        """Whether the assistant's sound is in the air now."""
        return self._player.sounding

    @property
    def sound_left(self) -> float | None:
        """Seconds of the answer that are still to be played; None while its end is not known."""
        if self._turn is None or not self._turn.answer.finished:
            return None
        return self._player.queued / PLAYBACK_RATE

    def frame(self, microphone: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take 20 ms of the microphone, give 20 ms of sound (reused by the next call: copy what is kept)."""
        self._t += FRAME
        for edge in self._listener.push(microphone):
            self._on_edge(edge)
        self.deliver()
        self._transcribe()
        self._draft_if_likely()
        self._speak_out_of_turn()
        if self._t - self._rested_at >= REST_EVERY:
            self._rest()
        return self._play()

    def deliver(self) -> None:
        """Take in finished work. Call between frames too, when results come in: an answer waits for no frame."""
        for done in self._workers.finished():
            done.deliver(self._failed)
        self._step(floor.Tick(self._now()))
        self._speaking.pump()
        self._change_character()

    def say_text(self, text: str) -> None:
        """The user typed `text`."""
        self._transcribed_at = self._seconds()
        self._step(floor.TextEntered(self._now(), text))

    def greet(self, text: str) -> None:
        """Say `text` first, if nobody speaks; it becomes part of the conversation."""
        self._say_unasked(text)

    def stop(self, *, forget: bool = False) -> None:
        """Be silent now; what was heard is kept. `forget`: but not the user's last words, which asked for it."""
        self._step(floor.StopRequested(self._now(), forget))

    def talk_key(self, key: floor.Key) -> None:
        """The push-to-talk key moved."""
        self._step(floor.TalkKey(self._now(), key))

    def become(self, character: Character) -> None:
        """Another character speaks from the next turn on; what was said stays."""
        self._next = character
        self._change_character()

    def save(self, folder: Path, saved: Callable[[int | Exception], None]) -> None:
        """Write what was said into `folder`, behind the work that is under way. `saved` gets the tokens or the error,
        on the MIND lane."""

        def write() -> None:
            try:
                saved(self._dialogue.save(folder))
            except Exception as error:  # noqa: BLE001 - a full disk must not cost the answer being given
                saved(error)

        self._workers.submit(Lane.MIND, write, lambda _: None)

    def close(self) -> None:
        """End here: an answer in the middle is cut where it was heard."""
        if self._turn is not None:
            self._cut_off()
        self._workers.close()
        self._dialogue.close()

    # --- time -------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        """Samples on the audio clock, between frames too."""
        return max(self._t, round(self._clock() * 16_000))

    def _seconds(self) -> float:
        return to_seconds(self._now())

    def _emit(self, type_: EventType, **fields: object) -> None:
        self._on_event(Event(fields.pop("t", self._seconds()), type_, **fields))  # type: ignore[arg-type]

    def _change_character(self) -> None:
        if self._next is None or not self._speaking.idle:
            return
        character, self._next = self._next, None

        def changed(_: None) -> None:
            self._settings = character.settings
            self._interjector.rules = character.settings.interjections
            self._emit(EventType.PERSONA, text=character.persona.name)

        self._workers.submit(Lane.MIND, lambda: self._dialogue.switch(character.persona, character.mouth), changed)

    # --- the floor --------------------------------------------------------------------------------------------

    def _step(self, event: floor.Event) -> None:
        self._state, actions = floor.step(self._state, event, self._settings.floor)
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action.act:
            case Act.DUCK:
                if not self._player.ducked:
                    self._emit(EventType.DUCK)
                self._player.duck()
            case Act.HOLD:
                self._player.hold()
                self._emit(EventType.HOLD)
            case Act.RESUME:
                if self._player.ducked:
                    self._emit(EventType.RESUME)
                self._player.resume()
            case Act.STOP:
                self._emit(EventType.BARGE_IN, text=action.text, turn=self._turn.index if self._turn else None)
                self._cut_off()
                self._follow()
            case Act.REVOKE:
                self._speaking.revoke()
                self._follow()
            case Act.COMMIT:
                self._commit(action)
            case Act.CUT_IN:
                pass  # done by `_cut_in`, which asked for it
            case Act.DISCARD:
                self._forget_utterance()
            case Act.BACKCHANNEL:
                self._emit(EventType.BACKCHANNEL, text=action.text)
                self._forget_utterance()

    # --- hearing ----------------------------------------------------------------------------------------------

    def _on_edge(self, edge: Noticed) -> None:
        match edge:
            case rise.SoundRose():
                self._step(floor.SoundRose(self._now()))
            case rise.SoundFell():
                self._step(floor.SoundFell(self._now()))
            case edges.OnsetLikely():
                self._step(floor.OnsetLikely(self._now()))
            case edges.OnsetLapsed():
                self._step(floor.OnsetFaded(self._now()))
            case edges.SpeechStarted():
                self._listener.open(edge.at_sample)
                self._emit(EventType.USER_SPEECH_START, at=to_seconds(edge.at_sample))
                self._step(floor.SpeechStarted(self._now(), edge.at_sample))
            case edges.SpeechEnded():
                self._listener.pause(edge)
                self._emit(EventType.USER_SPEECH_END, at=to_seconds(edge.at_sample))
                self._step(floor.SpeechEnded(self._now(), edge.at_sample))

    def _transcribe(self) -> None:
        job = self._listener.next_job()
        if job is not None:
            self._workers.submit(Lane.EARS, job, self._heard)

    def _heard(self, decoded: Decoded) -> None:
        transcript = self._listener.receive(decoded)
        self._transcribe()
        if transcript is None:
            return
        since = to_seconds(self._now() - self._state.speech_start)
        if transcript.accepted and self._speaking.is_echo(transcript.text, since):
            transcript = replace(transcript, accepted=False, reason="own echo")
        self._transcribed_at = self._seconds()
        if transcript.accepted:
            self._emit(EventType.PARTIAL, text=transcript.text, stable=transcript.stable)
        elif transcript.reason:
            self._emit(EventType.REJECTED, text=transcript.text, reason=transcript.reason)
        self._agreed = transcript.accepted and same_words(transcript.text, self._state.text)
        self._step(floor.Transcribed(self._now(), transcript.text, transcript.until, transcript.accepted))
        self._follow()
        if self._turn is None and transcript.accepted:
            self._interjector.words(transcript.stable, self._now())
            self._stable = transcript.stable

    def _follow(self) -> None:
        """Let the mind keep up with the words: prefill them, judge them, begin an answer when they look finished."""
        if not self._state.text or self._state.phase not in (Phase.USER, Phase.PAUSE) or self._turn is not None:
            return
        text = f"{self._state.held_text} {self._state.text}".strip()
        if same_words(text, self._listening_to):
            self._draft_if_likely()
            return
        self._listening_to = text
        said = self._state.text
        # A draft of other words would only keep the engine from judging these.
        self._speaking.answering.drop_unless(Prompt(text))

        def listen() -> float | None:
            # A newer hypothesis is waiting behind this one: skip the stale words.
            return self._dialogue.listen(text) if text == self._listening_to else None

        def judged(log_odds: float | None) -> None:
            if log_odds is not None:
                self._step(floor.Scored(self._now(), said, calibrated(log_odds, self._settings.calibration)))
                self._draft_if_likely()

        self._workers.submit(Lane.MIND, listen, judged)

    def _draft_if_likely(self) -> None:
        state = self._state
        text = f"{state.held_text} {state.text}".strip()
        if not state.text or self._turn is not None or state.phase not in (Phase.USER, Phase.PAUSE):
            return
        likely = state.finished is not None and state.finished >= self._settings.draft_above
        # In the middle of a word, words that look finished mostly are not ("how many legs does a spider"): a draft
        # then only takes the processor from the one that will be needed. Two transcripts that agree are a reason, or a
        # breath; and in a pause behind unfinished words there is time.
        if state.phase is Phase.PAUSE:
            unlikely = state.finished is not None and state.finished < self._settings.draft_above / 2
            ready = not unlikely or self._now() - state.speech_end >= self._settings.draft_anyway
        else:
            ready = likely and (self._agreed or self._listener.silence >= self._settings.draft_silence)
        if ready:
            self._speaking.answering.begin(Prompt(text))

    # --- answering --------------------------------------------------------------------------------------------

    def _commit(self, action: Action) -> None:
        state = self._state
        start = state.speech_start if self._speaking.resumed_from is None else self._speaking.resumed_from
        typed = action.waited == 0
        now = self._seconds()
        turn = self._open_turn(
            Prompt(action.text),
            start=now if typed else to_seconds(start),
            end=now if typed else to_seconds(state.speech_end),
        )
        if not typed:
            self._emit(EventType.ENDPOINT, turn=turn, silence=to_seconds(action.waited), finished=action.finished)
        self._emit(EventType.USER_TURN, turn=turn, text=action.text)
        self._speaking.give()

    def _open_turn(self, prompt: Prompt, start: float, end: float) -> int:
        """The user's turn is over (or there was none): `prompt` is being answered from now on. Its number."""
        turn = self._speaking.open(prompt, start, end, self._seconds(), self._transcribed_at)
        self._prompted = 0 if prompt.text else self._prompted
        self._interjector.turn_over()
        self._listener.forget()
        self._listening_to = self._stable = ""
        return turn.index

    # --- speaking out of turn ---------------------------------------------------------------------------------

    def _speak_out_of_turn(self) -> None:
        state, now = self._state, self._t
        if state.phase is not Phase.LISTENING or self._player.active:
            self._quiet_since = now
        if state.phase in (Phase.USER, Phase.PAUSE) and self._turn is None:
            spoken = (now if state.user_active else state.speech_end) - state.speech_start
            reason = self._interjector.due(self._stable, spoken, now)
            if reason is not None:
                self._cut_in(reason)
            elif state.phase is Phase.PAUSE:
                noise = self._interjector.noise_due(spoken, now - state.speech_end, state.finished)
                if noise is not None:
                    self._murmur(noise)
        rules = self._settings.silence
        if rules.due(now - self._quiet_since, self._prompted):
            self._prompted += 1
            self._say_unasked(rules.say[(self._prompted - 1) % len(rules.say)])

    def _cut_in(self, reason: Reason) -> None:
        speaking, text = self._state.user_active, self._state.text
        begun = self._state.speech_start
        self._step(floor.CutIn(self._now(), self._settings.interjections.grace))
        if self._state.phase is not Phase.THINKING or not text:
            return
        prompt = Prompt(self._state.committed, reason.say, reason.only_say)
        turn = self._open_turn(prompt, to_seconds(begun), self._seconds())
        self._emit(EventType.INTERJECTION, turn=turn, text=reason.say, reason=reason.name)
        self._emit(EventType.USER_TURN, turn=turn, text=self._state.committed)
        if speaking:
            self._listener.open(self._t)
        self._speaking.give()

    def _murmur(self, text: str) -> None:
        """A listening noise: soft, beside everything else, and no part of the conversation."""
        self._emit(EventType.LISTENING_NOISE, text=text)
        self._workers.submit(Lane.MIND, lambda: self._dialogue.sound_of(text), self._player.aside)

    def _say_unasked(self, text: str) -> None:
        self._step(floor.SpeakFirst(self._now()))
        if self._state.phase is Phase.THINKING and self._turn is None:
            now = self._seconds()
            self._open_turn(Prompt("", text, only_opening=True), now, now)
            self._speaking.give()

    def _rest(self) -> None:
        """While nobody has the floor: let the dialogue shorten its past. No turn ever waits for it."""
        if self._state.phase is not Phase.LISTENING or not self._speaking.idle or self._listener.busy:
            return

        def rested(done: Compacted | None) -> None:
            if done is not None:
                self._emit(EventType.COMPACTED, reason=f"{done.before} tokens became {done.after}")

        self._rested_at = self._t
        at_once = self._workers.inline
        self._workers.submit(Lane.MIND, lambda: self._dialogue.rest(at_once=at_once), rested)

    def _forget_utterance(self) -> None:
        self._listener.forget()
        self._listening_to = self._stable = ""
        if self._turn is None:
            self._speaking.answering.drop()
            self._workers.submit(Lane.MIND, self._dialogue.forget_tail, lambda _: None)

    # --- the end of an answer ---------------------------------------------------------------------------------

    def _play(self) -> NDArray[np.float32]:
        answering = self._turn is not None
        played = self._speaking.pull(self._t)
        if answering and played.started:
            self._step(floor.ReplySounding(self._now()))
        if answering and played.ended:
            self._step(floor.ReplyEnded(self._now()))
        self._listener.played(played.sound)
        return played.sound

    def _cut_off(self) -> None:
        if not self._speaking.cut_off(self._seconds()):
            self._step(floor.ReplyUnheard(self._now()))

    def _failed(self, error: BaseException) -> None:
        """A job broke. Say so, forget what hung on it, and listen again: one failure must not end a conversation."""
        self._emit(EventType.ERROR, reason=f"{type(error).__name__}: {error}")
        self._listener.failed()
        if self._speaking.fail():
            self._step(floor.ReplyEnded(self._now()))
