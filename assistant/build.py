"""Put a conversation together: load the models side by side, wire the parts.

`load` is the slow half and is shared by every conversation of a process; `converse` is cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from assistant.calibrations import calibration_of
from assistant.conversation.conversation import Character, Conversation, ConversationSettings
from assistant.conversation.dialogue import Dialogue
from assistant.conversation.heads import Heads
from assistant.conversation.interjecting import Scorer
from assistant.conversation.keeping import Kept
from assistant.conversation.listener import Listener
from assistant.conversation.reply import Mouth
from assistant.conversation.workers import Workers
from assistant.ears.echo import CancellerKind, make_canceller
from assistant.ears.edges import SpeechEdges
from assistant.ears.gate import GateSettings
from assistant.ears.transcriber import AsrSettings, Transcriber
from assistant.ears.utterance import UtteranceSettings
from assistant.ears.vad import VadSettings
from assistant.endpoint import Calibration
from assistant.llm_openai.choice import LlmChoice, LlmKind
from assistant.llm_openai.dialogue import RemoteDialogue, RemoteKept
from assistant.llm_openai.model import RemoteModel
from assistant.mouth import PersonaMouth, SilentMouth, VoiceShelf
from assistant.personas import Interruptibility, Persona
from assistant.personas.language import load_language
from assistant.player import Output
from assistant.timeline.events import Event, Turn
from assistant.timeline.record import Models
from engine import Engine, EngineSettings
from voices import Voice


@dataclass(frozen=True)
class ModelPaths:
    """Where the models lie."""

    llm: Path
    asr: Path
    voice: Path
    one_voice: bool = False
    """All personas speak with it, whatever voice they name."""


@dataclass(frozen=True)
class AssistantSettings:
    """Everything that may be set about an assistant."""

    vad: VadSettings = field(default_factory=VadSettings)
    asr: AsrSettings = field(default_factory=AsrSettings)
    utterance: UtteranceSettings = field(default_factory=UtteranceSettings)
    gate: GateSettings = field(default_factory=GateSettings)
    engine: EngineSettings = field(default_factory=lambda: EngineSettings(context=4096))
    """A voice needs no longer memory than half an hour of talk: what is older is dropped in the background."""
    llm: LlmChoice = field(default_factory=LlmChoice)
    """Whether the engine in this process answers, or a server."""
    conversation: ConversationSettings = field(default_factory=ConversationSettings)
    echo_canceller: CancellerKind = CancellerKind.AUTO
    voice_threads: int = 1


@dataclass(frozen=True)
class Parts:
    """Loaded models, shared by all conversations of a process."""

    engine: Engine
    transcriber: Transcriber
    voice: Voice
    names: Models
    settings: AssistantSettings
    heads: Heads
    """Prompts of the personas that have spoken."""
    shelf: VoiceShelf
    """The voices of personas that name another than the first one did."""

    @property
    def remote(self) -> RemoteModel | None:
        """The server that answers instead of the engine, if one does."""
        return self.engine if isinstance(self.engine, RemoteModel) else None  # type: ignore[unreachable]

    def close(self) -> None:
        """Stop the engine's worker."""
        self.heads.close()
        self.engine.close()


def load(paths: ModelPaths, settings: AssistantSettings, step: Callable[[str], None] = lambda name: None) -> Parts:
    """Load all models, each on a thread of its own. `step(name)` is called as each is ready."""

    def ready(name: str, job: Callable[[], Any]) -> Any:
        part = job()
        step(name)
        return part

    def ears() -> Transcriber:
        transcriber = Transcriber.load(paths.asr, settings.asr)
        transcriber.warm_up()
        return transcriber

    def mouth() -> Voice:
        voice = Voice.load(paths.voice, threads=settings.voice_threads)
        voice.synthesize("Ready.")  # the first synthesis is ten times slower than the second
        return voice

    with ThreadPoolExecutor(3) as pool:
        engine = pool.submit(ready, "language model", lambda: _mind(paths, settings))
        transcriber = pool.submit(ready, "ears", ears)
        voice = pool.submit(ready, "voice", mouth)
        names = Models(
            asr=paths.asr.name,
            llm=paths.llm.stem,
            voice=paths.voice.stem,
            vad=settings.vad.kind.value,
        )
        chosen, heads = _calibrated(settings, paths.llm), Heads(engine.result())
        shelf = VoiceShelf(settings.voice_threads, one_for_all=paths.one_voice)
        return Parts(engine.result(), transcriber.result(), voice.result(), names, chosen, heads, shelf)


def _mind(paths: ModelPaths, settings: AssistantSettings) -> Engine:
    if settings.llm.kind is LlmKind.OPENAI:
        return cast(Engine, RemoteModel(settings.llm))  # what the parts share of it; `converse` knows the difference
    return Engine.load(paths.llm, settings.engine)


def _calibrated(settings: AssistantSettings, llm: Path) -> AssistantSettings:
    """`settings` with the language model's own calibration, unless one was chosen."""
    if settings.conversation.calibration != Calibration():
        return settings
    return replace(settings, conversation=replace(settings.conversation, calibration=calibration_of(llm)))


def converse(
    parts: Parts,
    persona: Persona,
    workers: Workers,
    clock: Callable[[], float],
    on_event: Callable[[Event], None] = lambda event: None,
    on_turn: Callable[[Turn], None] = lambda turn: None,
    output: Output | None = None,
    *,
    silent: bool = False,
    scorer: Scorer | None = None,
    kept: Kept | RemoteKept | None = None,
) -> Conversation:
    """A new conversation on loaded models, or one that goes on with a `kept` past. Prefills the persona's prompt.
    `silent`: answers are text only."""
    settings = parts.settings
    canceller = make_canceller(settings.echo_canceller)
    listener = Listener(SpeechEdges(settings.vad), parts.transcriber, settings.utterance, settings.gate, canceller)
    mouth = _mouth(parts, persona, silent=silent)
    dialogue: Dialogue
    if parts.remote is not None:
        past = kept if isinstance(kept, RemoteKept) else None
        dialogue = cast(Dialogue, RemoteDialogue(parts.remote, persona, mouth, clock, past))
    else:
        past_here = kept if isinstance(kept, Kept) else None
        dialogue = Dialogue(parts.engine, persona, mouth, clock, past_here, parts.heads)
    manners = _manners(settings.conversation, persona)
    return Conversation(listener, dialogue, workers, clock, on_event, on_turn, manners, output, scorer)


def character(parts: Parts, persona: Persona, *, silent: bool = False) -> Character:
    """`persona` with a voice and manners, for `Conversation.become`. A voice that is new here is loaded now; NotPulled
    if it is not on this machine."""
    return Character(persona, _mouth(parts, persona, silent=silent), _manners(parts.settings.conversation, persona))


def _mouth(parts: Parts, persona: Persona, *, silent: bool) -> Mouth:
    if silent:
        return SilentMouth()
    noises = load_language(persona.language).noises if persona.backchannels else ()
    voice = parts.shelf.other(persona.voice.name) or parts.voice
    return PersonaMouth(voice, persona.voice, (*persona.phrases, *noises))


_OVERLAPS: dict[Interruptibility, dict[str, int]] = {
    Interruptibility.EASY: {"decide_after": 4_000, "hold_after": 3_200},
    Interruptibility.NORMAL: {},
    Interruptibility.HARD: {"min_words": 3, "decide_after": 16_000, "hold_after": 9_600},
}
"""What interruptibility changes in `OverlapRules`. "stop" and its like stop every character at once."""


def _manners(settings: ConversationSettings, persona: Persona) -> ConversationSettings:
    """`settings` with the persona's patience, ways with interruptions, reasons to cut in and words for a silence."""
    language = load_language(persona.language)
    rules = settings.floor
    changes: dict[str, Any] = dict(_OVERLAPS[persona.interruptibility])
    return replace(
        settings,
        floor=replace(
            rules,
            endpoint=replace(rules.endpoint, patience=rules.endpoint.patience * persona.patience),
            overlap=replace(language.overlap(rules.overlap), **changes),
        ),
        interjections=persona.interjections.rules(language.noises if persona.backchannels else ()),
        silence=settings.silence if persona.silence is None else persona.silence.rules(),
    )
