"""Is everything there, and does each stage work? One check a function, each with what to do if it fails."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE

if TYPE_CHECKING:
    from assistant.models import Model
    from assistant.personas import Persona
    from assistant.settings import Settings

SENTENCE = "The quick brown fox jumps over the lazy dog."
_ROOMS = ("assistant", "engine", "kernels", "voices")


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"  # something a conversation can do without, or that only some uses need
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """One finding. `advice` is empty when all is well."""

    name: str
    state: State
    detail: str
    advice: str = ""
    seconds: float = 0.0


@dataclass
class Patient:
    """What is examined; the stages leave here what later ones use."""

    settings: Settings
    persona: Persona
    paths: dict[str, Path]
    speech: NDArray[np.float32] | None = None  # the voice's test sentence at 16 kHz, for the ears


def examine(overrides: Sequence[str] = ()) -> Iterator[Check]:
    """Run all checks, giving each as it is done. Never raises for something that a check can report."""
    yield _timed("system", _system)
    yield _timed("graphics card", _graphics_card)
    yield _timed("sound devices", _sound_devices)
    found: list[Patient] = []
    yield _timed("settings", lambda: _settings(overrides, found))
    if not found:
        return
    patient = found[0]
    for role, reference in _wanted(patient).items():
        yield _timed(f"{role} model", lambda role=role, ref=reference: _model(patient, role, ref))  # type: ignore[misc]
    for name, role, stage in (
        ("speech detector", "", _detector),
        ("voice", "voice", _voice),
        ("ears", "asr", _ears),
        ("engine", "llm", _engine),
    ):
        if role and role not in patient.paths:
            yield Check(name, State.FAILED, "not tried: its model is missing", "see the model above")
            continue
        yield _timed(name, lambda stage=stage: stage(patient))  # type: ignore[misc]


def _timed(name: str, check: Callable[[], tuple[State, str, str]]) -> Check:
    begin = time.perf_counter()
    try:
        state, detail, advice = check()
    except Exception as error:
        # A doctor who falls ill at the sight of the illness is no use: whatever it is becomes a finding.
        ours = type(error).__module__.split(".")[0] in _ROOMS
        what = str(error) if ours else f"{type(error).__name__}: {error}"
        advice = "" if ours else "reinstall with `make setup`; if it stays, report it with this line"
        state, detail = State.FAILED, " ".join(what.split())
    return Check(name, state, detail, advice, time.perf_counter() - begin)


def _system() -> tuple[State, str, str]:
    from assistant import __version__

    memory = _memory_gigabytes()
    detail = f"crosstalk {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    detail += f", {os.cpu_count()} cores" + (f", {memory:.0f} GB memory" if memory else "")
    if memory and memory < 2:
        return State.WARNING, detail, "a conversation needs about 1.2 GB; close other programs"
    return State.OK, detail, ""


def _memory_gigabytes() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):
        return 0.0


def _graphics_card() -> tuple[State, str, str]:
    tool = shutil.which("nvidia-smi") or shutil.which("rocm-smi")
    if not tool:
        return State.OK, "none found; the CPU does everything", ""
    query = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"] if "nvidia" in tool else [tool, "-i"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return State.WARNING, f"{tool} does not answer", "check the driver; the CPU does everything until then"
    if said.returncode:
        return State.WARNING, f"{tool} finds no usable card", "check the driver; the CPU does everything until then"
    name = said.stdout.strip().splitlines()[0] if said.stdout.strip() else "a card"
    if not (find_spec("torch") and find_spec("triton")):
        return State.OK, f"{name}, not used", 'to use it: pip install "crosstalk-assistant[gpu]"'
    return State.OK, name, ""


def _sound_devices() -> tuple[State, str, str]:
    from assistant.audio.devices import DeviceError, list_devices
    from assistant.audio.duplex import may_share

    only = "needed for `chat` only; replay, say -o and transcribe work without"
    try:
        devices = list_devices()
    except DeviceError as error:
        return State.WARNING, str(error), only
    ears = [device for device in devices if device.inputs]
    mouths = [device for device in devices if device.outputs]
    if not ears or not mouths:
        missing = " and ".join(what for what, there in (("microphone", ears), ("speaker", mouths)) if not there)
        return State.WARNING, f"no {missing} found", f"plug one in or start the sound server; {only}"
    microphone = next((device for device in ears if device.default_input), ears[0])
    speaker = next((device for device in mouths if device.default_output), mouths[0])
    streams = "one full-duplex stream" if may_share(microphone, speaker) else "two streams"
    detail = f"microphone {microphone.name}, speaker {speaker.name}, on {streams}; {len(devices)} devices in all"
    return State.OK, detail, ""


def _settings(overrides: Sequence[str], found: list[Patient]) -> tuple[State, str, str]:
    from assistant.personas import load_persona
    from assistant.settings import parse_settings
    from assistant.settings.tree import settings_file

    found.append(Patient(parse_settings(overrides), load_persona("default"), {}))
    file = settings_file()
    return State.OK, f"from {file}" if file.exists() else f"defaults ({file} would change them)", ""


def _wanted(patient: Patient) -> dict[str, str]:
    from assistant.settings import voice_of

    models = patient.settings.models
    return {"llm": models.llm, "asr": models.asr, "voice": voice_of(patient.persona, patient.settings)}


def _model(patient: Patient, role: str, reference: str) -> tuple[State, str, str]:
    from assistant.models import Store, find_model, load_catalogue
    from assistant.models.errors import ModelError, NotPulled

    try:
        path = find_model(reference)
    except NotPulled:
        return State.FAILED, f"{reference} is not on this machine", f"crosstalk models pull {reference}"
    except ModelError as error:
        return State.FAILED, str(error), "correct the name in the settings or the persona"
    model: Model | None = load_catalogue().models.get(reference)
    if model and (damaged := Store().verify(model)):
        advice = f"crosstalk models remove {reference}; crosstalk models pull {reference}"
        return State.FAILED, f"{reference} is damaged: {', '.join(damaged)}", advice
    patient.paths[role] = path
    return State.OK, f"{reference}, {'checksums right' if model else path}", ""


def _detector(patient: Patient) -> tuple[State, str, str]:
    from assistant.ears.vad import SpeechDetector

    detector = SpeechDetector(patient.settings.vad)
    frames = np.zeros((SAMPLE_RATE // FRAME, FRAME), np.float32)
    detector.process(frames[0])
    begin = time.perf_counter()
    for frame in frames:
        detector.process(frame)
    each = (time.perf_counter() - begin) / len(frames)
    state = State.OK if each < 0.01 else State.WARNING
    kind = patient.settings.vad.kind.value
    advice = "" if state is State.OK else "too slow for live use; --set vad.kind=webrtc"
    return state, f"{kind}, {1000 * each:.2f} ms for each 20 ms of sound", advice


def _voice(patient: Patient) -> tuple[State, str, str]:
    from assistant.audio.resample import resample
    from voices import Voice

    begin = time.perf_counter()
    voice = Voice.load(patient.paths["voice"], threads=patient.settings.voice_threads)
    loaded = time.perf_counter() - begin
    voice.synthesize("Ready.")
    begin = time.perf_counter()
    speech = voice.synthesize(SENTENCE)
    took = time.perf_counter() - begin
    length = len(speech.pcm) / speech.sample_rate
    patient.speech = resample(speech.pcm, speech.sample_rate, SAMPLE_RATE)
    detail = f"loaded in {loaded:.2f} s; {length:.1f} s of speech made in {took:.2f} s"
    if took > length:
        return State.WARNING, detail, "slower than speech; answers will have gaps: close other programs"
    return State.OK, detail, ""


def _ears(patient: Patient) -> tuple[State, str, str]:
    from assistant.ears.transcriber import Transcriber

    begin = time.perf_counter()
    transcriber = Transcriber.load(patient.paths["asr"], patient.settings.asr)
    transcriber.warm_up()
    loaded = time.perf_counter() - begin
    if patient.speech is None:
        return State.WARNING, f"loaded in {loaded:.2f} s; not tried for want of speech", "see the voice above"
    begin = time.perf_counter()
    heard = transcriber.transcribe(patient.speech)
    took = time.perf_counter() - begin
    detail = f"loaded in {loaded:.2f} s; {len(patient.speech) / SAMPLE_RATE:.1f} s understood in {took:.2f} s"
    said, understood = (set(text.lower().strip(".").split()) for text in (SENTENCE, heard.text))
    if len(said & understood) < len(said) / 2:
        return State.FAILED, f'{detail}, as "{heard.text}"', "a damaged model or voice; pull them again"
    return State.OK, detail, ""


def _engine(patient: Patient) -> tuple[State, str, str]:
    from engine import Engine, Sampling

    begin = time.perf_counter()
    engine = Engine.load(patient.paths["llm"], patient.settings.engine)
    try:
        loaded = time.perf_counter() - begin
        session = engine.new_session()
        template = engine.template
        prompt = [*template.system("You are a helpful assistant."), *template.user_open(after_system=True)]
        prompt += [*engine.tokenizer.encode(f"Repeat: {SENTENCE}"), *template.user_close_and_assistant_open()]
        begin = time.perf_counter()
        session.append(prompt)
        filled = time.perf_counter()
        tokens = sum(1 for _ in session.generate(Sampling(max_tokens=16)))
        done = time.perf_counter()
        session.close()
    finally:
        engine.close()
    detail = f"loaded in {loaded:.2f} s; {len(prompt)} tokens read in {filled - begin:.2f} s"
    detail += f", {tokens} written at {1000 * (done - filled) / max(1, tokens):.0f} ms each"
    if not tokens:
        return State.WARNING, detail, "the model had nothing to say; try another"
    return State.OK, detail, ""
