"""Who may speak: the floor as a pure state machine.

`step(state, event, rules) -> (state, actions)` has no clock, thread, device or model in it, so every order of
events can be tried in a test. Times are samples of the microphone clock (16 kHz).

    LISTENING ── SpeechStarted ──► USER ── SpeechEnded ──► PAUSE ── endpoint ──► THINKING ── ReplySounding ──► SPEAKING
        ▲                           ▲◄── SpeechStarted ─────┘                        │                            │
        └───────────── ReplyEnded / nothing was said ◄──────────────────────────────┴────────────────────────────┘

Speech during THINKING or SPEAKING opens an *overlap*: first the assistant is ducked (or its first sound held
back), then words decide. New words stop it; a cough, a backchannel or its own echo let it go on from the same
sample. The decision may be late, the ducking may not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from assistant.endpoint import EndpointRules, Evidence, finishedness, required_silence
from assistant.overlap import OverlapRules, Reaction, classify, is_halt, same_words


class Phase(Enum):
    """Who has the floor."""

    LISTENING = "listening"  # nobody speaks
    USER = "user"  # the user speaks
    PAUSE = "pause"  # the user is silent, the turn is not over yet
    THINKING = "thinking"  # the turn is over, the answer makes no sound yet
    SPEAKING = "speaking"  # the assistant speaks


class Overlap(Enum):
    """How far a barge-in has come while it is undecided."""

    DUCKED = "ducked"  # the assistant goes on, quietly
    HELD = "held"  # the assistant is silent, ready to go on from the same sample


class Key(Enum):
    """The push-to-talk key."""

    FREE = "free"  # there is none: turns end by themselves
    DOWN = "down"  # the user's turn is not over, however long they think
    UP = "up"  # it is over as soon as its words are known


@dataclass(frozen=True)
class FloorRules:
    """Every threshold of the floor. Durations in samples at 16 kHz."""

    endpoint: EndpointRules = EndpointRules()
    overlap: OverlapRules = OverlapRules()
    suspect_for: int = 6_400
    """How long a likely onset keeps a turn open while it becomes speech or fades (400 ms)."""
    last_sound: int = 1_280
    """The end of the last word that a transcript may have missed and still be answered, if its words are surely a whole
    turn (80 ms): waiting for the next transcript costs 100 ms and more, and says the same."""
    reject_after: int = 9_600
    """Silence after which an utterance without accepted words is forgotten."""


@dataclass(frozen=True)
class FloorState:
    """All the floor knows. `text` is the open utterance's accepted transcript so far."""

    phase: Phase = Phase.LISTENING
    overlap: Overlap | None = None
    user_active: bool = False
    speech_start: int = 0
    """First sample of the open utterance's speech (or of the overlapping speech)."""
    speech_end: int = 0
    """Sample after the last speech heard from the user."""
    text: str = ""
    text_until: int = 0
    """The transcript covers the utterance up to this sample."""
    stopped: bool = False
    """The open utterance took the floor from the assistant."""
    suspect_since: int | None = None
    """PAUSE: when the user seemed to go on; the turn is not ended before that is certain."""
    finished: float | None = None
    """Probability that the words of `text` are a whole turn, None while unknown."""
    committed: str = ""
    """The user's turn that is being answered."""
    held_text: str = ""
    """Words of a turn whose answer was never heard, or said while the assistant cut in: they open the next turn."""
    key: Key = Key.FREE
    grace_until: int = 0
    """After an interjection: the user's words do not stop the assistant before this sample."""

    @property
    def open(self) -> bool:
        """Whether an utterance of the user's is being listened to."""
        return self.phase in (Phase.USER, Phase.PAUSE) or self.overlap is not None


# --- events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoundRose:
    """Something begins to sound, no telling what: enough to duck, for a moment."""

    t: int


@dataclass(frozen=True)
class SoundFell:
    """It was no voice."""

    t: int


@dataclass(frozen=True)
class OnsetLikely:
    """One or two frames sound like speech: too little to believe, enough to duck."""

    t: int


@dataclass(frozen=True)
class OnsetFaded:
    """The likely onset was none."""

    t: int


@dataclass(frozen=True)
class SpeechStarted:
    """Speech is certain. `at` is its first sample, earlier than `t`."""

    t: int
    at: int


@dataclass(frozen=True)
class SpeechEnded:
    """The user fell silent; `at` is the sample after the last speech."""

    t: int
    at: int


@dataclass(frozen=True)
class Transcribed:
    """The open utterance as understood so far. `until`: last sample of audio it covers."""

    t: int
    text: str
    until: int
    accepted: bool


@dataclass(frozen=True)
class Scored:
    """The engine's opinion of `text`: probability that a whole turn has been said."""

    t: int
    text: str
    finished: float


@dataclass(frozen=True)
class Tick:
    """A frame has passed."""

    t: int


@dataclass(frozen=True)
class ReplySounding:
    """The first sample of the answer was played."""

    t: int


@dataclass(frozen=True)
class ReplyEnded:
    """The answer was played to its end, or had nothing to play."""

    t: int


@dataclass(frozen=True)
class ReplyUnheard:
    """The answer was stopped before a word of it was heard: the user's words still wait for one."""

    t: int


@dataclass(frozen=True)
class CutIn:
    """The assistant has a reason to speak while the user does. `grace`: samples for which the user's going on does not
    stop it: nobody falls silent at once."""

    t: int
    grace: int


@dataclass(frozen=True)
class TalkKey:
    """The push-to-talk key went down or up, or talking is free again."""

    t: int
    key: Key


@dataclass(frozen=True)
class StopRequested:
    """A key, a command or a stop word: be silent now. `forget`: what the user has just said was this request, and no
    more."""

    t: int
    forget: bool = False


@dataclass(frozen=True)
class TextEntered:
    """The user typed instead of speaking."""

    t: int
    text: str


@dataclass(frozen=True)
class SpeakFirst:
    """The assistant opens the conversation (greeting, silence prompt)."""

    t: int


Event = (
    SoundRose | SoundFell | OnsetLikely | OnsetFaded | SpeechStarted | SpeechEnded | Transcribed | Scored | Tick
    | ReplySounding | ReplyEnded | ReplyUnheard | CutIn | TalkKey | StopRequested | TextEntered | SpeakFirst
)  # fmt: skip


# --- actions ----------------------------------------------------------------------------------------------------


class Act(Enum):
    """What the shell has to do."""

    DUCK = "duck"  # play on, quietly
    HOLD = "hold"  # stop the sound, keep the place
    RESUME = "resume"  # full level, from the same sample
    STOP = "stop"  # the user has the floor: fade out, keep what was heard
    REVOKE = "revoke"  # the answer was not heard at all: forget it, the user's turn goes on
    COMMIT = "commit"  # the turn is over: answer `Action.text`
    CUT_IN = "cut_in"  # answer `Action.text` now, over the user
    DISCARD = "discard"  # the utterance was nothing: forget its audio
    BACKCHANNEL = "backchannel"  # heard, not obeyed: forget its audio, note it


@dataclass(frozen=True)
class Action:
    """One order to the shell; `text` is the user's turn (COMMIT) or the words that decided (STOP, BACKCHANNEL)."""

    act: Act
    text: str = ""
    waited: int = 0
    """COMMIT: samples of silence that were waited for."""
    finished: float | None = None
    """COMMIT: the engine's probability that a whole turn was said, if it was asked."""


Step = tuple[FloorState, tuple[Action, ...]]


def step(state: FloorState, event: Event, rules: FloorRules = FloorRules()) -> Step:
    """The next state and what to do. Unknown combinations change nothing: late results are harmless."""
    match event:
        case SoundRose():
            return _while_speaking_alone(state, Act.DUCK)
        case SoundFell():
            return _while_speaking_alone(state, Act.RESUME)
        case OnsetLikely():
            return _onset_likely(state, event)
        case OnsetFaded():
            return _onset_faded(state)
        case SpeechStarted():
            return _speech_started(state, event)
        case SpeechEnded():
            return _speech_ended(state, event)
        case Transcribed():
            return _transcribed(state, event, rules)
        case Scored():
            same = same_words(event.text, state.text) and state.open
            return (replace(state, finished=event.finished) if same else state), ()
        case Tick():
            return _tick(state, event, rules)
        case ReplySounding():
            return (replace(state, phase=Phase.SPEAKING) if state.phase is Phase.THINKING else state), ()
        case ReplyEnded():
            return _reply_ended(state, event)
        case ReplyUnheard():
            return replace(state, held_text=state.committed), ()
        case CutIn():
            return _cut_in(state, event)
        case TalkKey():
            return replace(state, key=event.key), ()
        case StopRequested():
            return _stop_requested(state, event)
        case TextEntered():
            return _text_entered(state, event)
        case SpeakFirst():
            first = replace(state, phase=Phase.THINKING, committed="")
            return (first if state.phase is Phase.LISTENING else state), ()


def _fresh(state: FloorState, phase: Phase, **changes: object) -> FloorState:
    """`state` in `phase` with no open utterance."""
    empty = replace(
        state, phase=phase, overlap=None, text="", text_until=0, finished=None, held_text="",
        stopped=False, suspect_since=None,
    )  # fmt: skip
    return replace(empty, **changes)  # type: ignore[arg-type]


def _assistant_has_floor(state: FloorState) -> bool:
    return state.phase in (Phase.THINKING, Phase.SPEAKING)


def _while_speaking_alone(state: FloorState, act: Act) -> Step:
    """Louder or softer, as long as nobody is sure that the user speaks too."""
    alone = state.phase is Phase.SPEAKING and state.overlap is None
    return state, (Action(act),) if alone else ()


def _onset_likely(state: FloorState, event: OnsetLikely) -> Step:
    if state.phase is Phase.PAUSE:
        return replace(state, suspect_since=event.t), ()
    return _while_speaking_alone(state, Act.DUCK)


def _onset_faded(state: FloorState) -> Step:
    return _while_speaking_alone(replace(state, suspect_since=None), Act.RESUME)


def _speech_started(state: FloorState, event: SpeechStarted) -> Step:
    if state.user_active:
        return state, ()
    active = replace(state, user_active=True, suspect_since=None)
    if state.phase is Phase.LISTENING:
        return _fresh(active, Phase.USER, speech_start=event.at, held_text=state.held_text), ()
    if state.phase is Phase.PAUSE:
        return replace(active, phase=Phase.USER), ()
    if state.overlap is not None:  # the same overlapping utterance goes on after a gap
        return active, ()
    if state.phase is Phase.THINKING:
        return replace(active, overlap=Overlap.HELD, **_no_words(event.at)), (Action(Act.HOLD),)
    if state.phase is Phase.SPEAKING:
        return replace(active, overlap=Overlap.DUCKED, **_no_words(event.at)), (Action(Act.DUCK),)
    return active, ()


def _cut_in(state: FloorState, event: CutIn) -> Step:
    text = _join(state.held_text, state.text)
    if state.phase not in (Phase.USER, Phase.PAUSE) or not text:
        return state, ()
    # Seen from here on the user speaks over the assistant, as in any overlap; only the grace is new.
    overlap = Overlap.DUCKED if state.user_active else None
    changed = _fresh(state, Phase.THINKING, committed=text, overlap=overlap, speech_start=event.t)
    return replace(changed, grace_until=event.t + event.grace), (Action(Act.CUT_IN, text),)


def _no_words(at: int) -> dict:
    return {"speech_start": at, "text": "", "text_until": 0, "finished": None}


def _speech_ended(state: FloorState, event: SpeechEnded) -> Step:
    if not state.user_active:
        return state, ()
    quiet = replace(state, user_active=False, speech_end=event.at)
    return (replace(quiet, phase=Phase.PAUSE) if state.phase is Phase.USER else quiet), ()


def _transcribed(state: FloorState, event: Transcribed, rules: FloorRules) -> Step:
    if not state.open or event.until < state.text_until:
        return state, ()
    text = event.text if event.accepted else ""
    # A full stop that comes with the last transcript does not make the engine's opinion of the words stale.
    changed = not same_words(text, state.text)
    known = replace(
        state,
        text=text,
        text_until=event.until,
        finished=None if changed else state.finished,
    )
    return _decide_overlap(known, event.t, rules) if known.overlap is not None else (known, ())


def _covered(state: FloorState) -> bool:
    """Whether the transcript has seen all of the user's speech."""
    return not state.user_active and state.text_until >= state.speech_end


def _decide_overlap(state: FloorState, t: int, rules: FloorRules) -> Step:
    if t < state.grace_until:
        if not _covered(state):
            return state, ()
        # The user has given way. What was said meanwhile is not lost: it opens the next turn.
        kept = replace(_after_overlap(state), held_text=_join(state.held_text, state.text))
        return kept, (Action(Act.DISCARD), Action(Act.RESUME))
    spoken = (t if state.user_active else state.speech_end) - state.speech_start
    reaction = classify(state.text, spoken, complete=_covered(state), rules=rules.overlap)
    if reaction is Reaction.STOP:
        phase = Phase.USER if state.user_active else Phase.PAUSE
        if state.phase is Phase.THINKING:
            revoked = replace(state, phase=phase, overlap=None, held_text=state.committed, stopped=True)
            return revoked, (Action(Act.REVOKE, state.text),)
        return replace(state, phase=phase, overlap=None, stopped=True), (Action(Act.STOP, state.text),)
    if reaction is Reaction.GO_ON:
        act = Act.BACKCHANNEL if state.text else Act.DISCARD
        return _after_overlap(state), (Action(act, state.text), Action(Act.RESUME))
    return state, ()


def _after_overlap(state: FloorState) -> FloorState:
    return _fresh(state, state.phase, held_text=state.held_text)


def _tick(state: FloorState, event: Tick, rules: FloorRules) -> Step:
    if state.overlap is not None:
        return _tick_overlap(state, event.t, rules)
    if state.phase is not Phase.PAUSE or state.key is Key.DOWN or _suspect(state, event.t, rules):
        return state, ()
    silence = event.t - state.speech_end
    if not _covered(state) and not _nearly_covered(state, rules):
        # Without a transcript there is nothing to answer. A lost one (a crashed transcriber) must not leave both
        # sides waiting for ever.
        lost = silence > rules.endpoint.give_up
        return (_fresh(state, Phase.LISTENING), (Action(Act.DISCARD),)) if lost else (state, ())
    text = _join(state.held_text, state.text)
    if not state.text:
        if silence < rules.reject_after:
            return state, ()
        if not state.held_text:
            return _fresh(state, Phase.LISTENING), (Action(Act.DISCARD),)
    needed = required_silence(Evidence(text=text, finished=state.finished), rules.endpoint)
    if silence < needed and state.key is not Key.UP:
        return state, ()
    if state.stopped and is_halt(state.text):  # it has been obeyed; an answer would be more of what was not wanted
        return _fresh(state, Phase.LISTENING), (Action(Act.DISCARD),)
    commit = Action(Act.COMMIT, text, waited=silence, finished=state.finished)
    return _fresh(state, Phase.THINKING, committed=text), (commit,)


def _nearly_covered(state: FloorState, rules: FloorRules) -> bool:
    """Whether only the fading of the last word is missing from words that are surely a whole turn."""
    if state.user_active or not state.text or state.text_until < state.speech_end - rules.last_sound:
        return False
    text = _join(state.held_text, state.text)
    return finishedness(Evidence(text=text, finished=state.finished)) >= rules.endpoint.sure_above


def _suspect(state: FloorState, t: int, rules: FloorRules) -> bool:
    return state.suspect_since is not None and t - state.suspect_since < rules.suspect_for


def _join(first: str, second: str) -> str:
    return f"{first} {second}".strip()


def _tick_overlap(state: FloorState, t: int, rules: FloorRules) -> Step:
    if state.user_active:
        due = max(state.speech_start + rules.overlap.hold_after, state.grace_until)
        if state.overlap is Overlap.DUCKED and t >= due:
            return replace(state, overlap=Overlap.HELD), (Action(Act.HOLD),)
        return state, ()
    if _covered(state):
        return _decide_overlap(state, t, rules)
    if t - state.speech_end > rules.overlap.give_up:
        return _after_overlap(state), (Action(Act.DISCARD), Action(Act.RESUME))
    return state, ()


def _reply_ended(state: FloorState, event: ReplyEnded) -> Step:
    if not _assistant_has_floor(state):
        return state, ()
    if state.overlap is None:
        return _fresh(state, Phase.LISTENING), ()
    # The user began before the last word was out: an ordinary utterance from here on.
    return replace(state, phase=Phase.USER if state.user_active else Phase.PAUSE, overlap=None), ()


def _stop_requested(state: FloorState, event: StopRequested) -> Step:
    if event.forget:
        stop = (Action(Act.STOP),) if _assistant_has_floor(state) else ()
        return _fresh(state, Phase.LISTENING), (*stop, Action(Act.DISCARD))
    if not _assistant_has_floor(state):
        return state, ()
    phase = Phase.LISTENING
    if state.overlap is not None:
        phase = Phase.USER if state.user_active else Phase.PAUSE
    return replace(state, phase=phase, overlap=None), (Action(Act.STOP),)


def _text_entered(state: FloorState, event: TextEntered) -> Step:
    stop = (Action(Act.STOP),) if _assistant_has_floor(state) else ()
    drop = (Action(Act.DISCARD),) if state.open else ()
    return _fresh(state, Phase.THINKING, committed=event.text), (*stop, *drop, Action(Act.COMMIT, event.text))
