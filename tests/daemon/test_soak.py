"""A thousand turns on the virtual clock, with everything a daemon has around a conversation: nothing grows.

CROSSTALK_SOAK_TURNS=100 makes it shorter.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.audio.sound_card import SoundStats
from assistant.build import AssistantSettings, ModelPaths, Parts, converse, load
from assistant.conversation.workers import InlineWorkers
from assistant.daemon.client import Control
from assistant.daemon.config import HookChoice, KeepChoice, LogChoice, LogLevel, PrivacyChoice, WakeChoice
from assistant.daemon.control import ControlServer
from assistant.daemon.ears import Ears
from assistant.daemon.hooks import Hooks
from assistant.daemon.journal import Journal
from assistant.daemon.log import Log
from assistant.daemon.memory import Memory
from assistant.daemon.metrics import Metrics
from assistant.daemon.sayings import Sayings
from assistant.floor import Phase
from assistant.live import FrontEnd, LiveSession
from assistant.personas import load_persona
from assistant.timeline.events import EventType

TURNS = int(os.environ.get("CROSSTALK_SOAK_TURNS", "1000"))
ROUND = max(1, TURNS // 10)
SPOKEN_EVERY = 10
QUESTIONS = (
    "What is the capital of France?",
    "How many legs does a spider have?",
    "What is three times four?",
    "Say something kind.",
    "What is the opposite of cold?",
    "Name a colour.",
)
SILENCE = np.zeros(FRAME, np.float32)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Row:
    turns: int
    memory: float
    handles: int
    threads: int
    seconds: float
    """Processor time of a typed turn, median."""
    held: int
    context: int
    compactions: int


class Box(FrontEnd):
    """The daemon's parts around one conversation; time is frames."""

    def __init__(self, parts: Parts, folder: Path) -> None:
        log = Log(LogChoice(LogLevel.ERROR))
        self.parts = parts
        self.turns = self.compactions = self.context = 0
        self.errors: list[str | None] = []
        self.phase = Phase.LISTENING
        self.memory = Memory(folder, KeepChoice(after=60.0), log)
        self.ears = Ears(WakeChoice())
        self.sayings = Sayings()
        metrics = Metrics(lambda: parts.engine.stats, SoundStats)
        hooks = Hooks(HookChoice(answer="true"), log)
        journal = Journal(folder, PrivacyChoice(transcripts=True), log)
        persona = replace_sentences(1)
        self.session = LiveSession(
            lambda wiring: converse(
                parts, persona, wiring.workers, wiring.clock, wiring.on_event, wiring.on_turn, wiring.output
            ),
            self, self.ears, self.memory, metrics, hooks, journal, self.sayings,
            workers=lambda wake: InlineWorkers(),
            monotonic=lambda: 0.0,
        ).start()  # fmt: skip
        self.sayings.use(self.session)
        self.session.wait_until_ready()
        self.control = ControlServer(folder / "c.sock", lambda request: {"page": len(metrics.page())})
        self.control.open()
        self.control.start()

    def event(self, event) -> None:
        self.compactions += event.type is EventType.COMPACTED
        if event.type is EventType.ERROR:
            self.errors.append(event.reason)

    def turn(self, turn) -> None:
        self.turns = max(self.turns, turn.index + 1)
        self.context = turn.tokens.context

    def status(self, status) -> None:
        self.phase = status.phase

    def hear(self, sound: np.ndarray) -> None:
        for start in range(0, len(sound) - FRAME + 1, FRAME):
            self.session.frame(sound[start : start + FRAME])
        done = threading.Event()
        self.session.run(done.set)
        assert done.wait(120)

    def until_answered(self, before: int) -> None:
        for _ in range(120):
            self.hear(np.zeros(SAMPLE_RATE // 2, np.float32))
            if self.turns > before and self.phase is Phase.LISTENING:
                return
        raise AssertionError(("no answer", self.phase, self.errors))

    def close(self) -> None:
        self.control.close()
        self.session.close()


def replace_sentences(sentences: int):
    return load_persona("default").model_copy(update={"answer_sentences": sentences, "answer_tokens": 24})


@pytest.mark.soak
def test_a_thousand_turns(smollm2_path: Path, whisper_path: Path, piper_path: Path, tmp_path_factory) -> None:
    settings = AssistantSettings()
    settings = replace(settings, engine=replace(settings.engine, context=1024))  # a long past comes often
    parts = load(ModelPaths(smollm2_path, whisper_path, piper_path), settings)
    box = Box(parts, tmp_path_factory.mktemp("b"))
    dice = random.Random(3)
    spoken = {}
    for question in QUESTIONS:
        speech = parts.voice.synthesize(question)
        sound = resample(speech.pcm, speech.sample_rate, SAMPLE_RATE)
        spoken[question] = np.concatenate([sound, np.zeros(SAMPLE_RATE // 5, np.float32)])
    rows: list[Row] = []
    took: list[float] = []
    missed = 0
    print(f"\n{'turns':>6} {'MB':>7} {'handles':>8} {'threads':>8} {'CPU s/turn':>11} {'pages':>6} {'context':>8}")
    try:
        for number in range(1, TURNS + 1):
            question, before = dice.choice(QUESTIONS), box.turns
            if number % SPOKEN_EVERY == 0:
                box.hear(spoken[question])
                try:
                    box.until_answered(before)
                except AssertionError:
                    missed += 1
            else:
                begun = time.process_time()
                box.session.say(question)
                box.until_answered(before)
                took.append(time.process_time() - begun)
            if number % 50 == 0:
                box.memory.save(box.session)
                with Control(box.control.path) as control:
                    assert control.ask("status")["page"] > 1000
            if number % ROUND == 0:
                gc.collect()
                rows.append(
                    Row(
                        number,
                        resident() / 1e6,
                        len(os.listdir("/proc/self/fd")),
                        threading.active_count(),
                        median(took),
                        parts.engine.stats.pools[0].held,
                        box.context,
                        box.compactions,
                    )
                )
                took.clear()
                row = rows[-1]
                print(
                    f"{row.turns:>6} {row.memory:>7.1f} {row.handles:>8} {row.threads:>8} {row.seconds:>11.3f} "
                    f"{row.held:>6} {row.context:>8}",
                    flush=True,
                )
    finally:
        box.close()
        parts.close()
    assert not box.errors and missed <= TURNS // 100
    assert box.compactions >= TURNS // 100
    settled = rows[len(rows) // 4]
    assert rows[-1].memory - settled.memory < 30, "memory grows"
    assert rows[-1].handles <= settled.handles + 2, "file handles grow"
    assert max(row.held for row in rows) <= 1.2 * 1024 / 32 + 30, "pages stay held"
    late, early = median(row.seconds for row in rows[-3:]), median(row.seconds for row in rows[1:4])
    assert late < 1.3 * early, "turns grow slower"
    print(f"{box.turns} turns, {box.compactions} times the past was shortened, {missed} spoken turns were missed")
