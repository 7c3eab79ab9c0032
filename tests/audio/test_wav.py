"""A WAV file is whole at every moment of its writing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from assistant.audio.errors import SoundWriteError
from assistant.audio.wav import WavWriter, to_pcm16, write_wav


def test_what_is_written_is_read_back(tmp_path):
    stereo = np.random.default_rng(0).uniform(-1, 1, (1000, 2)).astype(np.float32)
    write_wav(tmp_path / "a.wav", stereo, 24_000)
    back, rate = soundfile.read(tmp_path / "a.wav", always_2d=True)
    assert rate == 24_000
    assert np.abs(back - stereo).max() < 2 / 32_767


def test_beyond_full_scale_is_clipped_not_wrapped():
    assert to_pcm16(np.array([2.0, -2.0, 1.0, 0.0], np.float32)).tolist() == [32767, -32767, 32767, 0]


def test_the_file_is_valid_after_every_write_and_before_the_first(tmp_path):
    path = tmp_path / "a.wav"
    writer = WavWriter(path, 16_000)
    for count in range(4):
        assert soundfile.info(path).frames == count * 100
        writer.write(np.full(100, 0.5, np.float32))
    assert writer.frames == 400
    writer.close()
    writer.close()
    assert soundfile.info(path).frames == 400


def test_a_killed_process_leaves_all_it_wrote(tmp_path):
    path = tmp_path / "a.wav"
    code = (
        "import sys, numpy as np\nfrom assistant.audio.wav import WavWriter\n"
        f"writer = WavWriter({str(path)!r}, 16000)\n"
        "for _ in range(7): writer.write(np.zeros(1600, np.float32))\n"
        "print('written', flush=True)\nsys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"written\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert child.stdin is not None
    child.stdin.close()
    child.stdout.close()
    assert soundfile.info(path).frames == 7 * 1600


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(SoundWriteError, match="cannot be written: No such file or directory"):
        WavWriter(tmp_path / "missing" / "a.wav", 16_000)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said():
    with pytest.raises(SoundWriteError, match="No space left"):
        WavWriter("/dev/full", 16_000)


def test_the_wrong_number_of_channels_is_a_mistake_of_the_caller(tmp_path):
    with WavWriter(tmp_path / "a.wav", 16_000, 2) as writer, pytest.raises(ValueError, match="1 channels"):
        writer.write(np.zeros(10, np.float32))
