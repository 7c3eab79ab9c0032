"""The stereo recording: aligned, complete, valid whenever the run ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.recorder import Recorder


@pytest.mark.parametrize("frames", [0, 1, 24, 25, 60])
def test_every_frame_is_there_and_sides_are_aligned(tmp_path: Path, frames: int) -> None:
    recorder = Recorder(tmp_path / "o.wav")
    t = np.arange(frames * FRAME) / SAMPLE_RATE
    heard = (0.5 * np.sin(2 * np.pi * 200 * t)).astype(np.float32)
    t = np.arange(frames * PLAYBACK_FRAME) / PLAYBACK_RATE
    said = (0.5 * np.sin(2 * np.pi * 200 * t)).astype(np.float32)
    for i in range(frames):
        recorder.add(heard[i * FRAME : (i + 1) * FRAME], said[i * PLAYBACK_FRAME : (i + 1) * PLAYBACK_FRAME])
    recorder.close()
    sound, rate = soundfile.read(tmp_path / "o.wav", dtype="float32")
    assert rate == PLAYBACK_RATE and sound.shape == (frames * PLAYBACK_FRAME, 2)
    if frames > 2:
        middle = sound[600:-600]
        assert np.abs(middle[:, 0] - middle[:, 1]).max() < 0.01
    assert recorder.heard.peaks().size == frames


def test_a_killed_run_leaves_a_valid_file(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "o.wav")
    for _ in range(60):
        recorder.add(np.zeros(FRAME, np.float32), np.ones(PLAYBACK_FRAME, np.float32))
    sound, _ = soundfile.read(tmp_path / "o.wav")
    assert 48 * PLAYBACK_FRAME <= len(sound) <= 60 * PLAYBACK_FRAME
