"""The detectors themselves: streaming equals batch, they cost what they should."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from assistant.ears.errors import EarsModelError, EarsSettingsError
from assistant.ears.silero import CHUNK, SileroVad
from assistant.ears.vad import NoiseFloor, level_db
from assistant.ears.webrtc import WebrtcVad
from tests.audio.speech import in_room, pause


def test_silero_chunk_by_chunk_is_the_packaged_model_over_the_whole(speech):
    from faster_whisper.vad import get_vad_model

    pcm = in_room(pause(500), speech.user("What is the capital of France?"), pause(500))
    pcm = pcm[: len(pcm) // CHUNK * CHUNK]
    whole = get_vad_model()(pcm).reshape(-1)
    model = SileroVad()
    streamed = [model.probability(chunk) for chunk in pcm.reshape(-1, CHUNK)]
    # The package puts the context of the last chunk in front of the first: from the second on they agree.
    assert np.abs(whole[1:] - streamed[1:]).max() < 0.02
    model.reset()
    assert [model.probability(chunk) for chunk in pcm.reshape(-1, CHUNK)] == streamed


def test_a_missing_model_is_said(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EarsModelError, match="install faster-whisper"):
        SileroVad()


def test_webrtc_refuses_a_mode_it_does_not_have():
    with pytest.raises(EarsSettingsError, match="0, 1, 2 or 3"):
        WebrtcVad(4)


def test_the_floor_falls_at_once_and_rises_slowly_under_a_voice():
    floor = NoiseFloor()
    assert floor.update((-40.0, -41.0), 0.0) == -41
    for _ in range(20):
        low = floor.update((-60.0, -60.0), 0.0)
    assert low == pytest.approx(-60, abs=0.1)
    for _ in range(50):
        voiced = floor.update((-20.0, -20.0), 0.9)
    assert voiced == pytest.approx(-58, abs=0.2)
    for _ in range(50):
        unvoiced = floor.update((-20.0, -20.0), 0.0)
    assert unvoiced == pytest.approx(-38, abs=0.5)


def test_levels():
    assert level_db(np.zeros(160, np.float32)) == pytest.approx(-120)
    assert level_db(np.full(160, 0.1, np.float32)) == pytest.approx(-20, abs=0.01)


def test_importing_the_ears_loads_no_model_and_no_torch():
    code = (
        "import sys, threading\n"
        "import assistant.ears.edges, assistant.ears.transcriber, assistant.ears.gate, assistant.ears.utterance\n"
        "heavy = {'torch', 'ctranslate2', 'onnxruntime', 'faster_whisper', 'webrtcvad'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
