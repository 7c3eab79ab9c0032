"""`crosstalk personas try` from its wishes to printed answers: only the models that it needs are loaded."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assistant.audio.constants import PLAYBACK_RATE
from assistant.audio.wav import WavWriter
from assistant.conversation.reply import Mouth
from assistant.models import find_model
from assistant.mouth import PersonaMouth, SilentMouth
from assistant.personas.attempt import attempts
from assistant.personas.files import load_persona
from assistant.settings import parse_settings, voice_of
from engine import Engine
from voices import Voice


@dataclass(frozen=True)
class TryRequest:
    """What the user asked for."""

    persona: str
    texts: tuple[str, ...]
    out: Path | None = None
    speak: bool = False
    overrides: tuple[str, ...] = ()


def run(request: TryRequest) -> None:
    """Print the answers, and make them heard if that was asked for. Errors are one line."""
    persona = load_persona(request.persona)
    settings = parse_settings(request.overrides)
    llm = find_model(settings.models.llm)
    mouth: Mouth = SilentMouth()
    if request.out is not None or request.speak:
        mouth = PersonaMouth(Voice.load(find_model(voice_of(persona, settings))), persona.voice)
    writer = None if request.out is None else WavWriter(request.out, PLAYBACK_RATE)
    sounds = []
    engine = Engine.load(llm, settings.engine)
    try:
        for attempt in attempts(engine, persona, mouth, list(request.texts)):
            if attempt.said:
                print(f"you      {attempt.said}")
            note = f"  [cuts in: {attempt.cut_in}]" if attempt.cut_in else ""
            print(f"{persona.name:8} {attempt.answer}{note}  ({attempt.seconds:.1f} s)", flush=True)
            pause = np.zeros(PLAYBACK_RATE // 2, np.float32)
            if writer is not None:
                writer.write(np.concatenate([attempt.sound, pause]))
            if request.speak:
                sounds += [attempt.sound, pause]
    finally:
        engine.close()
        if writer is not None:
            writer.close()
    if request.out is not None:
        print(f"spoken into {request.out}", file=sys.stderr)
    if sounds:
        _play(np.concatenate(sounds))


def _play(sound: np.ndarray) -> None:
    from assistant.audio.devices import play

    play(sound, PLAYBACK_RATE)
