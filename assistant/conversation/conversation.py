"""The conversation: the thin shell around the floor.

Frames of the microphone go in, frames of the assistant's sound come out, 20 ms each, on one clock. Everything slow is
a job on a lane; its result comes back here, so all state has one owner and no locks. What to do is decided by
`assistant/floor.py`; this file only does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant import floor
from assistant.audio.constants import FRAME, PLAYBACK_RATE
from assistant.conversation.answering import Answering
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.interjecting import Interjector, Scorer
from assistant.conversation.listener import Decoded, Listener
from assistant.conversation.reply import Mouth
from assistant.conversation.turns import Answer, OpenTurn, Prompt, to_seconds
from assistant.conversation.workers import Lane, Workers
from assistant.ears import edges
from assistant.ears.own_words import is_echo
from assistant.endpoint import Calibration, calibrated
from assistant.floor import Act, Action, FloorRules, FloorState, Phase
from assistant.interjection import InterjectionRules, Reason, SilenceRules
from assistant.overlap import plain_words, same_words
from assistant.persona import Persona
from assistant.player import Output, Player
from assistant.timeline.events import Event, EventType, Tokens, Turn

ECHO_SECONDS = 1.5
"""How long before the user seemed to begin a word may have been said to come back as an echo."""


@dataclass(frozen=True)
class ConversationSettings:
    """What may be set about a conversation."""

    floor: FloorRules = FloorRules()
    calibration: Calibration = Calibration()
    lookahead: float = 6.0
    """Seconds of sound that are made ahead of what is being heard."""
    draft_lookahead: float = 0.6
    """Seconds of sound of an answer that may yet be dropped."""
    draft_above: float = 0.5
    """Probability of a finished turn above which an answer is begun while the user may still be speaking."""
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
        self._on_turn = on_turn
        self._settings = settings
        self._output = output or Output()
        self._player = Player()
        self._state = FloorState()
        self._t = 0
        """Samples of the microphone that came in."""
        self._answering = Answering(dialogue, workers, self._emit, self._on_pieces)
        self._turn: OpenTurn | None = None
        self._turns = 0
        self._interjector = Interjector(dialogue, workers, settings.interjections, scorer)
        self._quiet_since = 0
        """Sample since which nobody has spoken."""
        self._prompted = 0
        """Silences broken since the user last spoke."""
        self._first_speech: int | None = None
        """Start of the user's turn when it has been resumed after an answer nobody heard."""
        self._transcribed_at = 0.0
        self._listening_to = ""
        self._stable = ""
        """The part of the open utterance's words that is not expected to change."""
        self._next: Character | None = None
        """Who speaks from the next turn on."""

    # --- what goes on outside ---------------------------------------------------------------------------------

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
        self._speak_out_of_turn()
        return self._play()

    def deliver(self) -> None:
        """Take in finished work. Call between frames too, when results come in: an answer waits for no frame."""
        for done in self._workers.finished():
            done.deliver(self._failed)
        self._step(floor.Tick(self._now()))
        self._pump()
        self._change_character()

    def say_text(self, text: str) -> None:
        """The user typed `text`."""
        self._transcribed_at = self._seconds()
        self._step(floor.TextEntered(self._now(), text))

    def greet(self, text: str) -> None:
        """Say `text` first, if nobody speaks; it becomes part of the conversation."""
        self._say_unasked(text)

    def stop(self) -> None:
        """Be silent now; what was heard is kept."""
        self._step(floor.StopRequested(self._now()))

    def talk_key(self, key: floor.Key) -> None:
        """The push-to-talk key moved."""
        self._step(floor.TalkKey(self._now(), key))

    def become(self, character: Character) -> None:
        """Another character speaks from the next turn on; what was said stays."""
        self._next = character
        self._change_character()

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
        if self._next is None or self._turn is not None or self._answering.current is not None:
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
                self._revoke()
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

    def _on_edge(self, edge: edges.Edge) -> None:
        match edge:
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
        if transcript.accepted and self._is_echo(transcript.text):
            transcript = replace(transcript, accepted=False, reason="own echo")
        self._transcribed_at = self._seconds()
        if transcript.accepted:
            self._emit(EventType.PARTIAL, text=transcript.text, stable=transcript.stable)
        elif transcript.reason:
            self._emit(EventType.REJECTED, text=transcript.text, reason=transcript.reason)
        self._step(floor.Transcribed(self._now(), transcript.text, transcript.until, transcript.accepted))
        self._follow()
        if self._turn is None and transcript.accepted:
            self._interjector.words(transcript.stable, self._now())
            self._stable = transcript.stable

    def _is_echo(self, text: str) -> bool:
        """Whether the microphone heard the answer that is in the air."""
        if self._turn is None or self._turn.speech_start is None:
            return False
        answer, position = self._turn.answer, self._player.position
        since = position - round((ECHO_SECONDS + to_seconds(self._now() - self._state.speech_start)) * PLAYBACK_RATE)
        said = [w for w in answer.words() if w.end_sample > since and w.start_sample <= position]
        if not said:
            return False
        in_the_air = answer.text[said[0].start_char : said[-1].end_char]
        return is_echo(plain_words(text), plain_words(in_the_air))

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
        if state.phase is Phase.PAUSE or likely:
            self._answering.begin(Prompt(text))

    # --- answering --------------------------------------------------------------------------------------------

    def _on_pieces(self, answer: Answer, had: int) -> None:
        if self._turn is not None and self._turn.answer is answer:
            self._release(had)
        self._pump()

    def _release(self, start: int = 0) -> None:
        """Give the pieces of sound from `start` on to the player."""
        turn = self._turn
        assert turn is not None
        answer = turn.answer
        for piece in answer.pieces[start:]:
            if piece.clause:
                self._emit(EventType.ASSISTANT_TEXT, turn=turn.index, text=piece.clause)
            self._player.add(piece.sound)
        if answer.draft is not None:
            turn.tokens = answer.draft.tokens
        if answer.finished:
            self._player.complete()

    def _pump(self) -> None:
        answer = self._answering.current
        if answer is None:
            return
        if self._turn is not None and self._turn.answer is answer:
            self._answering.pump(self._player.queued, self._settings.lookahead)
        else:
            self._answering.pump(answer.samples, self._settings.draft_lookahead)

    def _commit(self, action: Action) -> None:
        state = self._state
        start = state.speech_start if self._first_speech is None else self._first_speech
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
        self._give()

    def _open_turn(self, prompt: Prompt, start: float, end: float) -> int:
        """The user's turn is over (or there was none): `prompt` is being answered from now on. Its number."""
        self._turn = OpenTurn(
            index=self._turns,
            user_text=prompt.text,
            user_start=start,
            user_end=end,
            endpoint_at=self._seconds(),
            transcribed_at=self._transcribed_at,
            answer=self._answering.begin(prompt),
        )
        self._turns += 1
        self._first_speech = None
        self._prompted = 0 if prompt.text else self._prompted
        self._interjector.turn_over()
        self._listener.forget()
        self._listening_to = self._stable = ""
        return self._turn.index

    def _give(self) -> None:
        """Let the answer be heard: what is ready of it at once, the rest as it comes."""
        self._player.begin()
        self._release()
        self._pump()

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
        self._open_turn(Prompt(self._state.committed, reason.say, reason.only_say), to_seconds(begun), self._seconds())
        assert self._turn is not None
        self._emit(EventType.INTERJECTION, turn=self._turn.index, text=reason.say, reason=reason.name)
        self._emit(EventType.USER_TURN, turn=self._turn.index, text=self._state.committed)
        if speaking:
            self._listener.open(self._t)
        self._give()

    def _murmur(self, text: str) -> None:
        """A listening noise: soft, beside everything else, and no part of the conversation."""
        self._emit(EventType.LISTENING_NOISE, text=text)
        self._workers.submit(Lane.MIND, lambda: self._dialogue.sound_of(text), self._player.aside)

    def _say_unasked(self, text: str) -> None:
        self._step(floor.SpeakFirst(self._now()))
        if self._state.phase is Phase.THINKING and self._turn is None:
            now = self._seconds()
            self._open_turn(Prompt("", text, only_opening=True), now, now)
            self._give()

    def _forget_utterance(self) -> None:
        self._listener.forget()
        self._listening_to = self._stable = ""
        if self._turn is None:
            self._answering.drop()
            self._workers.submit(Lane.MIND, self._dialogue.forget_tail, lambda _: None)

    # --- the end of an answer ---------------------------------------------------------------------------------

    def _play(self) -> NDArray[np.float32]:
        played = self._player.pull()
        turn = self._turn
        if played.started and turn is not None:
            lead = (turn.answer.lead_in() + self._output.delay) / PLAYBACK_RATE
            turn.speech_start = to_seconds(self._t) + lead
            self._emit(EventType.FIRST_TOKEN, turn=turn.index, at=turn.answer.marks.first_token)
            self._emit(EventType.ASSISTANT_SPEECH_START, turn=turn.index, at=turn.speech_start)
            self._step(floor.ReplySounding(self._now()))
        if played.ended and turn is not None:
            self._ended(turn)
        self._listener.played(played.sound)
        return played.sound

    def _ended(self, turn: OpenTurn) -> None:
        said = turn.answer.text.strip()
        if turn.speech_start is not None:
            turn.speech_end = to_seconds(self._t + FRAME) + self._output.delay / PLAYBACK_RATE
            self._emit(EventType.ASSISTANT_SPEECH_END, turn=turn.index)
        turn.heard_text = said
        self._emit(EventType.HEARD, turn=turn.index, text=said)
        self._settle(turn, len(turn.answer.text))
        self._step(floor.ReplyEnded(self._now()))

    def _cut_off(self) -> None:
        """The answer ends here: keep exactly what was heard of it."""
        turn = self._turn
        if turn is None:
            return
        heard = turn.answer.heard(self._player.stop(self._output))
        turn.interrupted = True
        turn.heard_text = turn.answer.text[:heard].strip()
        if turn.speech_start is not None:
            turn.speech_end = self._seconds()
            self._emit(EventType.ASSISTANT_SPEECH_END, turn=turn.index)
        self._emit(EventType.HEARD, turn=turn.index, text=turn.heard_text)
        if heard:
            self._settle(turn, heard)
        else:
            self._abandon(turn)
            self._step(floor.ReplyUnheard(self._now()))

    def _settle(self, turn: OpenTurn, heard: int) -> None:
        self._turn = None
        self._on_turn(turn.record())

        def settled(tokens: Tokens) -> None:
            turn.tokens = tokens
            self._on_turn(turn.record())

        self._answering.settle(turn.answer, heard, settled)

    def _abandon(self, turn: OpenTurn) -> None:
        """Nothing of the answer was heard: the user's words still stand, the answer never was."""
        self._turn = None
        self._first_speech = round(turn.user_start * 16_000)
        self._on_turn(turn.record())
        self._answering.drop()

    def _revoke(self) -> None:
        turn = self._turn
        self._player.stop(self._output)
        if turn is None:
            return
        self._emit(EventType.DRAFT_DROPPED, turn=turn.index, text=turn.user_text)
        self._turn = None
        self._turns -= 1
        self._first_speech = round(turn.user_start * 16_000)
        self._answering.drop()

    def _failed(self, error: BaseException) -> None:
        """A job broke. Say so, forget what hung on it, and listen again: one failure must not end a conversation."""
        self._emit(EventType.ERROR, reason=f"{type(error).__name__}: {error}")
        self._listener.failed()
        turn, self._turn = self._turn, None
        self._answering.drop()
        self._player.stop(self._output)
        if turn is not None:
            self._on_turn(turn.record())
            self._step(floor.ReplyEnded(self._now()))
