"""A sound card without hardware: a PulseAudio server of this test run's own, with one speaker and one microphone.

What the assistant plays into the speaker can be recorded, and what the test plays into `mic_in` is what the
microphone hears.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPEAKER = "module-null-sink sink_name=speaker rate=48000 channels=2 norewinds=1"
# Without norewinds the null sink rewrites what it already gave out, and streams die silently.
MICROPHONE = (
    "module-null-sink sink_name=mic_in rate=48000 channels=1 norewinds=1",
    "module-remap-source source_name=mic master=mic_in.monitor channels=1",
)


@dataclass
class SoundServer:
    """A running server; `environment` makes programs use it."""

    folder: Path
    environment: dict[str, str]
    _modules: dict[str, str] = field(default_factory=dict)

    def pactl(self, *arguments: str) -> str:
        done = subprocess.run(
            ["pactl", *arguments], env=self.environment, capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout.strip()

    def start(self) -> None:
        """Start the server with both devices; returns when it answers."""
        command = ["pulseaudio", "-n", "--daemonize=yes", "--exit-idle-time=-1", "--disallow-exit=no"]
        command += [f"--log-target=file:{self.folder / 'pulse.log'}", "-L", "module-native-protocol-unix"]
        for module in (SPEAKER, *MICROPHONE):
            command += ["-L", module]
        subprocess.run(command, env=self.environment, check=True, timeout=30, capture_output=True)
        self.pactl("set-default-sink", "speaker")
        self.pactl("set-default-source", "mic")

    def stop(self) -> None:
        subprocess.run(["pulseaudio", "--kill"], env=self.environment, capture_output=True, timeout=20)

    def unplug_microphone(self) -> None:
        """The source disappears; the server moves its listeners to another one without a word."""
        for line in self.pactl("list", "short", "modules").splitlines():
            number, name, *_ = line.split("\t")
            if name == "module-remap-source":
                self.pactl("unload-module", number)

    def plug_microphone(self) -> None:
        name, *arguments = MICROPHONE[1].split(" ")
        self.pactl("load-module", name, *arguments)
        self.pactl("set-default-source", "mic")

    def play_into_microphone(self, pcm: NDArray[np.float32], rate: int) -> subprocess.Popen[bytes]:
        """The user speaks: float32 mono, at real pace, in the background."""
        file = self.folder / "user.wav"
        with wave.open(str(file), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(rate)
            out.writeframes((np.clip(pcm, -1, 1) * 32767).astype("<i2").tobytes())
        command = ["paplay", "--device=mic_in", "--latency-msec=200", str(file)]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @contextmanager
    def recording_the_speaker(self, rate: int = 16_000) -> Iterator[Path]:
        """Record what comes out of the speaker into the file given, until the block ends (raw 16-bit mono)."""
        file = self.folder / "heard.raw"
        command = ["parec", "--device=speaker.monitor", "--format=s16le", f"--rate={rate}", "--channels=1"]
        with file.open("wb") as out:
            process = subprocess.Popen([*command, "--latency-msec=20"], env=self.environment, stdout=out)
            try:
                yield file
            finally:
                process.terminate()
                process.wait(10)


def samples_of(file: Path) -> NDArray[np.float32]:
    """What `recording_the_speaker` wrote, so far."""
    data = file.read_bytes()
    return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768)


@contextmanager
def sound_server() -> Iterator[SoundServer]:
    """A server for as long as the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="crosstalk-sound-"))  # short: a socket's path has a limit of 107 bytes
    folder.chmod(0o700)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PULSE_")}
    environment |= {"XDG_RUNTIME_DIR": str(folder), "HOME": str(folder), "PULSE_SERVER": f"unix:{folder}/pulse/native"}
    server = SoundServer(folder, environment)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
