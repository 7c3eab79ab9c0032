"""From a cue to sound: what is heard, and where in it somebody really speaks.

Voices: `espeak:en-us+f3` (a stranger's), `joe` or `joe:1.25` (Piper, higher by that factor so that the user does not
sound like the assistant), or a recording of a person.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.audio import noise
from assistant.audio.constants import SAMPLE_RATE, samples
from assistant.audio.resample import resample
from assistant.scenarios.format import Cue, ScenarioError, Sound
from assistant.scenarios.recordings import MissingVoice, recording
from voices import Speech

HOP = samples(10)
QUIET_DB = 35.0
"""Ten milliseconds this far below the loudest of an utterance are no speech: where the labels end."""
JOIN = samples(180)
"""Gaps shorter than this lie inside words."""

Pcm = NDArray[np.float32]
Speak = Callable[[str, float], Speech]
"""The assistant's voice: text and speed in, speech out."""


@dataclass(frozen=True)
class Utterance:
    """A cue as sound, float32 at 16 kHz. `spans`: samples [start, end) of each stretch of speech in it."""

    pcm: Pcm
    text: str
    spans: tuple[tuple[int, int], ...]


class Speakers:
    """Renders cues. `speak` is needed for the Piper voices only."""

    def __init__(self, speak: Speak | None = None, folder: Path | None = None) -> None:
        """`folder`: where a scenario's own recordings lie."""
        self._speak = speak
        self._folder = folder
        self._known: dict[Cue, Utterance] = {}

    def render(self, cue: Cue, seed: int = 0) -> Utterance:
        """The sound of `cue`; `MissingVoice` if this machine cannot make it."""
        if cue.sound is not None:
            pcm = effect(cue.sound, cue.seconds, cue.level_db, seed)
            return Utterance(pcm, "", ((0, pcm.size),))
        if cue not in self._known:
            self._known[cue] = self._spoken(cue)
        return self._known[cue]

    def _spoken(self, cue: Cue) -> Utterance:
        if cue.recording:
            pcm = self._recorded(cue)
        elif cue.voice.startswith("espeak:"):
            pcm = espeak(cue.say, cue.voice.partition(":")[2])
        elif cue.voice.partition(":")[0] == "joe":
            pcm = self._piper(cue.say, float(cue.voice.partition(":")[2] or 1.0))
        else:
            raise ScenarioError(f"there is no voice '{cue.voice}'; there are espeak:NAME, joe and joe:FACTOR.")
        spans = speech_spans(pcm)
        if not spans:
            raise ScenarioError(f"nothing is to be heard in '{cue.recording or cue.say}'.")
        return Utterance(at_level(pcm, spans, cue.level_db), bare_text(cue.say), spans)

    def _recorded(self, cue: Cue) -> Pcm:
        pcm = recording(cue.recording, self._folder)
        if cue.part is not None:
            start, end = (round(second * SAMPLE_RATE) for second in cue.part)
            pcm = faded(pcm[start:end])
        for at, length in sorted(cue.gaps, reverse=True):
            pcm = with_gap(pcm, round(at * SAMPLE_RATE), length)
        return pcm

    def _piper(self, say: str, pitch: float) -> Pcm:
        if self._speak is None:
            raise MissingVoice("the Piper voice is not loaded.")
        text, pauses = split_pauses(say)
        speech = self._speak(text, 1.0 / pitch)
        pcm, rate = speech.pcm, round(speech.sample_rate * pitch)
        for place, length in reversed(pauses):
            after = [word.start_sample for word in speech.words if word.start_char >= place]
            before = [word.end_sample for word in speech.words if word.end_char <= place]
            at = ((before[-1] if before else 0) + (after[0] if after else pcm.size)) // 2
            pcm = with_gap(pcm, at, length, rate)
        return resample(pcm, rate, SAMPLE_RATE)


_PAUSE = re.compile(r"\s*\[(\d+(?:\.\d+)?)\]\s*")


def split_pauses(say: str) -> tuple[str, list[tuple[int, float]]]:
    """Text without the pause marks, and (character, seconds) of each: "a [0.5] b" is ("a b", [(1, 0.5)])."""
    text, pauses = "", []
    for index, piece in enumerate(_PAUSE.split(say)):
        if index % 2:
            pauses.append((len(text), float(piece)))
        else:
            text += f" {piece}" if text and piece else piece
    return text, pauses


def bare_text(say: str) -> str:
    """What is said, without the pause marks."""
    return split_pauses(say)[0]


def with_gap(pcm: Pcm, at: int, seconds: float, rate: int = SAMPLE_RATE) -> Pcm:
    """`pcm` with `seconds` of silence put in at sample `at`, faded on both sides."""
    return np.concatenate([faded(pcm[:at]), np.zeros(round(seconds * rate), np.float32), faded(pcm[at:])])


def faded(pcm: Pcm, length: int = samples(5)) -> Pcm:
    """`pcm` with soft ends: a cut must not click."""
    out = pcm.copy()
    count = min(length, out.size // 2)
    if count:
        ramp = np.linspace(0, 1, count, dtype=np.float32)
        out[:count] *= ramp
        out[-count:] *= ramp[::-1]
    return out


def speech_spans(pcm: Pcm) -> tuple[tuple[int, int], ...]:
    """Where there is sound, to 10 ms: [start, end) of each stretch; short gaps are closed.

    Worked example: 1.0 s of voice, 0.5 s of nothing, 0.4 s of voice gives ((0, 16000), (24000, 30400)).
    """
    hops = pcm[: pcm.size // HOP * HOP].reshape(-1, HOP)
    if not hops.size:
        return ()
    levels = 10 * np.log10(np.square(hops).mean(axis=1) + 1e-12)
    loud = levels > max(levels.max() - QUIET_DB, -75.0)
    spans: list[tuple[int, int]] = []
    for hop in np.flatnonzero(loud):
        start, end = int(hop) * HOP, (int(hop) + 1) * HOP
        if spans and start - spans[-1][1] < JOIN:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return tuple(spans)


def at_level(pcm: Pcm, spans: tuple[tuple[int, int], ...], level_db: float) -> Pcm:
    """`pcm` so that its speech has an RMS of `level_db`, without clipping."""
    power = np.concatenate([pcm[a:b] for a, b in spans])
    gain = 10 ** (level_db / 20) / max(1e-9, float(np.sqrt(np.square(power).mean())))
    return np.clip(pcm * np.float32(gain), -1.0, 1.0)


@lru_cache(256)
def espeak(say: str, voice: str) -> Pcm:
    """`say` by espeak-ng, a few per cent slower than its own pace; the same sound each time."""
    command = shutil.which("espeak-ng")
    if command is None:
        raise MissingVoice("espeak-ng is not on this machine; on Debian: apt-get install espeak-ng.")
    text, pauses = split_pauses(say)
    marked = text
    for place, length in reversed(pauses):
        marked = f'{marked[:place]} <break time="{round(length * 1000)}ms"/> {marked[place:]}'
    import soundfile

    arguments = [command, "-v", voice, "-s", "165", "-m", "--stdout", f"<speak>{marked}</speak>"]
    done = subprocess.run(arguments, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise MissingVoice(f"espeak-ng cannot speak as '{voice}': {done.stderr.decode(errors='replace').strip()}.")
    pcm, rate = soundfile.read(io.BytesIO(done.stdout), dtype="float32")
    return resample(pcm, rate, SAMPLE_RATE)


def effect(sound: Sound, seconds: float, level_db: float, seed: int = 0) -> Pcm:
    """A sound that is not speech, float32 at 16 kHz. Coughs, doors and chimes have their own length."""
    match sound:
        case Sound.SILENCE:
            return noise.silence(seconds)
        case Sound.COUGH:
            return noise.cough(level_db, seed)
        case Sound.DOOR:
            return noise.door(level_db, seed)
        case Sound.CHIME:
            return noise.chime(level_db=level_db)
        case Sound.HUM:
            return noise.hum(seconds, level_db)
        case _:
            return _MAKERS[sound](seconds, level_db, seed)


_MAKERS: dict[Sound, Callable[[float, float, int], Pcm]] = {
    Sound.WHITE: noise.white,
    Sound.PINK: noise.pink,
    Sound.KEYBOARD: noise.keyboard,
    Sound.OFFICE: noise.office,
}

BED_SECONDS = 20.0


@cache
def bed(sound: Sound, level_db: float) -> Pcm:
    """Twenty seconds of a background that can be looped: its end is blended into its beginning."""
    pcm = effect(sound, BED_SECONDS + 1.0, level_db)
    if pcm.size < samples(2_000):
        return pcm
    fade = samples(1_000)
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    body, tail = pcm[:-fade].copy(), pcm[-fade:]
    body[:fade] = body[:fade] * np.sqrt(ramp) + tail * np.sqrt(1 - ramp)
    return body
