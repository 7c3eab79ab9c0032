"""Real full-duplex streams: on a card made of files every sample in both directions, on a sound server every one heard.

That a server's door is not given one stream is in test_duplex.py; here it is forced, to see the ears' side of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from assistant.audio import duplex
from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.resample import StreamResampler
from assistant.audio.sound_card import SoundCard
from tests.audio.file_card import CONFIGURATION
from tests.audio.test_sound_card import SECOND, found_at, noise, run, server
from tests.sound_card import SoundServer

__all__ = ["server"]
FRAMES = 100


@pytest.mark.device
def test_every_sample_passes_a_card_in_both_directions(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    spoken, said = (
        generator.uniform(-0.5, 0.5, samples).astype(np.float32)
        for samples in (2 * FRAMES * FRAME, FRAMES * PLAYBACK_FRAME)
    )
    said[-10 * PLAYBACK_FRAME :] = 0.0  # what is in the speaker's ring at the end is never played
    spoken.tofile(tmp_path / "spoken.raw")
    said.tofile(tmp_path / "said.raw")
    (tmp_path / "asound.conf").write_text(CONFIGURATION.format(folder=tmp_path))
    environment = os.environ | {"ALSA_CONFIG_PATH": str(tmp_path / "asound.conf")}
    command = [sys.executable, "-m", "tests.audio.file_card", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["shared"] and counts["rate"] == SAMPLE_RATE and counts["inputs"] and counts["outputs"]
    heard, played = (np.fromfile(tmp_path / name, np.float32) for name in ("heard.raw", "played.raw"))
    assert len(heard) == FRAMES * FRAME and np.array_equal(heard, spoken[: len(heard)])
    wanted = np.trim_zeros(StreamResampler(PLAYBACK_RATE, SAMPLE_RATE).push(said))
    assert counts["underflows"] == counts["xruns"] == 0 and np.array_equal(np.trim_zeros(played), wanted)


@pytest.mark.device
def test_every_sample_is_heard_on_one_stream(server: SoundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a loss is counted, which a machine busy with other work may cause; then it is tried again."""
    monkeypatch.setattr(duplex, "may_share", lambda microphone, speaker: True)
    for _ in range(4):
        spoken, said = noise(2, SAMPLE_RATE), noise(2, PLAYBACK_RATE)
        frames = iter(said[: len(said) // PLAYBACK_FRAME * PLAYBACK_FRAME].reshape(-1, PLAYBACK_FRAME))
        with SoundCard() as card:
            run(card, SECOND // 2)
            assert card._streams is not None and card._streams.shared
            player = server.play_into_microphone(spoken, SAMPLE_RATE)
            heard = run(card, 3 * SECOND, frames)
            player.wait(10)
            stats = card.stats
        if not (stats.input_xruns or stats.output_xruns or stats.dropped_samples or stats.lost):
            assert found_at(spoken, heard)[1] > 0.9, "a gap or a doubled piece between the user and the ears"
            return
    pytest.skip("this machine is too busy for sound: every try lost some, and said so")
