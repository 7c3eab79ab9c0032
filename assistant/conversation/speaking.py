"""The assistant's side: the turn being answered, its answer on the way to the speaker, and how it ends.

An answer ends in one of four ways: played to its end, cut off where it was heard, abandoned because nothing of it was
heard, or revoked before it made a sound. Conversation thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.audio.constants import FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.conversation.answering import Answering, Emit
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.turns import Answer, OpenTurn, Prompt, to_seconds
from assistant.conversation.workers import Workers
from assistant.ears.own_words import is_echo
from assistant.overlap import plain_words
from assistant.player import Output, Played, Player
from assistant.timeline.events import EventType, Tokens, Turn


@dataclass(frozen=True)
class SpeakingSettings:
    """How far ahead sound is made, in seconds, and how long an echo may take."""

    lookahead: float = 6.0
    """Of an answer that is being heard."""
    draft_lookahead: float = 0.6
    """Of an answer that may yet be dropped."""
    echo: float = 1.5
    """How long before the user seemed to begin a word may have been said to come back as an echo."""


class Speaking:
    """At most one turn is answered at a time; `turn` is that one."""

    def __init__(
        self,
        dialogue: Dialogue,
        workers: Workers,
        emit: Emit,
        on_turn: Callable[[Turn], None],
        output: Output,
        settings: SpeakingSettings,
    ) -> None:
        self._emit = emit
        self._on_turn = on_turn
        self._output = output
        self._settings = settings
        self._count = 0
        self.player = Player()
        self.answering = Answering(dialogue, workers, emit, self._on_pieces)
        self.turn: OpenTurn | None = None
        self.resumed_from: int | None = None
        """Start of the user's turn that goes on after an answer nobody heard (sample of the microphone clock)."""

    @property
    def idle(self) -> bool:
        """Whether no answer is being drafted or given."""
        return self.turn is None and self.answering.current is None

    def open(self, prompt: Prompt, start: float, end: float, now: float, transcribed_at: float) -> OpenTurn:
        """`prompt` is being answered from `now` on: what was said from `start` to `end` (seconds)."""
        turn = OpenTurn(
            index=self._count,
            user_text=prompt.text,
            user_start=start,
            user_end=end,
            endpoint_at=now,
            transcribed_at=transcribed_at,
            answer=self.answering.begin(prompt),
        )
        self.turn = turn
        self._count += 1
        self.resumed_from = None
        return turn

    def give(self) -> None:
        """Let the open turn's answer be heard: what is ready of it at once, the rest as it comes."""
        self.player.begin()
        self._release(0)
        self.pump()

    def _on_pieces(self, answer: Answer, had: int) -> None:
        if self.turn is not None and self.turn.answer is answer:
            self._release(had)
        self.pump()

    def _release(self, start: int) -> None:
        """Give the pieces of sound from `start` on to the player."""
        turn = self.turn
        assert turn is not None
        answer = turn.answer
        for piece in answer.pieces[start:]:
            if piece.clause:
                self._emit(EventType.ASSISTANT_TEXT, turn=turn.index, text=piece.clause)
            self.player.add(piece.sound)
        if answer.draft is not None:
            turn.tokens = answer.draft.tokens
        if answer.finished:
            self.player.complete()

    def pump(self) -> None:
        """Have more of the answer made if too little is ready."""
        answer = self.answering.current
        if answer is None:
            return
        if self.turn is not None and self.turn.answer is answer:
            self.answering.pump(self.player.queued, self._settings.lookahead)
        else:
            self.answering.pump(answer.samples, self._settings.draft_lookahead)

    def pull(self, t: int) -> Played:
        """The next frame of sound; `t`: samples of the microphone that came in."""
        played = self.player.pull()
        turn = self.turn
        if played.started and turn is not None:
            lead = (turn.answer.lead_in() + self._output.delay) / PLAYBACK_RATE
            turn.speech_start = to_seconds(t) + lead
            self._emit(EventType.FIRST_TOKEN, turn=turn.index, at=turn.answer.marks.first_token)
            self._emit(EventType.ASSISTANT_SPEECH_START, turn=turn.index, at=turn.speech_start)
        if played.ended and turn is not None:
            self._ended(turn, to_seconds(t + FRAME) + self._output.delay / PLAYBACK_RATE)
        return played

    def in_the_air(self, since: float) -> str:
        """The answer's words that may come back as an echo in what the user seemed to say for `since` seconds."""
        if self.turn is None or self.turn.speech_start is None:
            return ""
        answer, position = self.turn.answer, self.player.position
        first = position - round((self._settings.echo + since) * PLAYBACK_RATE)
        said = [word for word in answer.words() if word.end_sample > first and word.start_sample <= position]
        return answer.text[said[0].start_char : said[-1].end_char] if said else ""

    def is_echo(self, text: str, since: float) -> bool:
        """Whether `text`, heard for `since` seconds, is the answer come back."""
        return is_echo(plain_words(text), plain_words(self.in_the_air(since)))

    # --- how an answer ends -----------------------------------------------------------------------------------

    def _ended(self, turn: OpenTurn, now: float) -> None:
        if turn.speech_start is not None:
            turn.speech_end = now
            self._emit(EventType.ASSISTANT_SPEECH_END, turn=turn.index)
        turn.heard_text = turn.answer.text.strip()
        self._emit(EventType.HEARD, turn=turn.index, text=turn.heard_text)
        self._settle(turn, len(turn.answer.text))

    def cut_off(self, now: float) -> bool:
        """The answer ends here: keep exactly what was heard of it. False if that is nothing: the user's words still
        stand then, and the answer never was."""
        turn = self.turn
        if turn is None:
            return True
        heard = turn.answer.heard(self.player.stop(self._output))
        turn.interrupted = True
        turn.heard_text = turn.answer.text[:heard].strip()
        if turn.speech_start is not None:
            turn.speech_end = now
            self._emit(EventType.ASSISTANT_SPEECH_END, turn=turn.index)
        self._emit(EventType.HEARD, turn=turn.index, text=turn.heard_text)
        if heard:
            self._settle(turn, heard)
            return True
        self._forget(turn)
        self._on_turn(turn.record())
        return False

    def revoke(self) -> None:
        """The user goes on before the answer made a sound: there was no turn."""
        turn = self.turn
        self.player.stop(self._output)
        if turn is not None:
            self._emit(EventType.DRAFT_DROPPED, turn=turn.index, text=turn.user_text)
            self._count -= 1
            self._forget(turn)

    def fail(self) -> bool:
        """A job broke: drop the answer. Whether a turn was open."""
        turn, self.turn = self.turn, None
        self.answering.drop()
        self.player.stop(self._output)
        if turn is not None:
            self._on_turn(turn.record())
        return turn is not None

    def _forget(self, turn: OpenTurn) -> None:
        self.turn = None
        self.resumed_from = round(turn.user_start * SAMPLE_RATE)
        self.answering.drop()

    def _settle(self, turn: OpenTurn, heard: int) -> None:
        self.turn = None
        self._on_turn(turn.record())

        def settled(tokens: Tokens) -> None:
            turn.tokens = tokens
            self._on_turn(turn.record())

        self.answering.settle(turn.answer, heard, settled)
