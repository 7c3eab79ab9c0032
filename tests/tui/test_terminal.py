"""The whole thing in a real terminal: tmux, the command, a virtual sound card, a spoken question, keys."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assistant.audio.constants import SAMPLE_RATE
from assistant.audio.resample import resample
from tests.loaded import loaded
from tests.sound_card import SoundServer, sound_server

PATIENCE = 20.0


class Terminal:
    """A tmux session of our own server, 80 by 24."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._socket = str(folder / "tmux")
        self._environment = environment

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True).stdout

    def start(self, command: list[str]) -> None:
        """Its exit code comes on the screen: tmux 3.3 at times never collects its child, and then knows no code."""
        shell = ["sh", "-c", '"$@"; echo "ended with $?"; exec cat', "sh"]
        self._tmux("new-session", "-d", "-x", "80", "-y", "24", *shell, *command)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def until(self, shown: Callable[[str], bool]) -> str:
        """The screen, as soon as it shows that."""
        end = time.monotonic() + PATIENCE
        while not shown(screen := self.screen()):
            assert time.monotonic() < end, f"never shown; the screen is\n{screen}"
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        self._tmux("kill-server")


@contextmanager
def terminal(folder: Path, server: SoundServer) -> Iterator[Terminal]:
    # The user's own models, though HOME is the sound server's folder.
    environment = {**server.environment, "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8", "TERM": "xterm"}
    opened = Terminal(folder, environment)
    opened.start([sys.executable, "-m", "assistant.cli", "chat"])
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.device
def test_a_conversation_in_a_terminal(smollm2_path: Path, whisper_path: Path, piper_path: Path, tmp_path: Path) -> None:
    voice = loaded(smollm2_path, whisper_path, piper_path).voice
    question = voice.synthesize("What is the capital of France?")
    user = resample(question.pcm, question.sample_rate, SAMPLE_RATE)
    with sound_server() as server, terminal(tmp_path, server) as screen:
        screen.until(lambda shown: "● listening" in shown)
        server.play_into_microphone(user, SAMPLE_RATE).wait(20)
        shown = screen.until(lambda shown: "it  " in shown and "Paris" in shown)
        assert "you What is the capital of France" in shown
        shown = screen.until(lambda shown: "to its first sound" in shown and "forwarded" in shown)

        screen.press("m")
        screen.until(lambda shown: "● muted" in shown and "you muted" in shown)
        screen.press("m")
        screen.until(lambda shown: "● muted" not in shown)
        screen.press("t")
        screen.press("-l", "How many legs does a spider have?")
        screen.press("Enter")
        screen.until(lambda shown: "eight legs" in shown)
        screen.press("Escape")
        screen.until(lambda shown: "╭" not in shown)  # Escape and r at once would be Alt+r
        screen.press("r")
        screen.until(lambda shown: "Who speaks from the next turn on?" in shown)
        screen.press("Escape")
        screen.until(lambda shown: "Who speaks" not in shown)
        screen.press("d")
        screen.until(lambda shown: "Microphone" in shown and "the system's default" in shown)
        screen.press("Enter")
        screen.until(lambda shown: "Speaker" in shown)
        screen.press("Enter")
        screen.until(lambda shown: "Speaker" not in shown)
        server.play_into_microphone(user, SAMPLE_RATE).wait(20)  # the devices that were opened anew hear and speak
        screen.until(lambda shown: shown.count("Paris") >= 2)
        server.unplug_microphone()
        screen.until(lambda shown: "trying again" in shown)
        server.plug_microphone()
        screen.until(lambda shown: "the sound is back" in shown)
        screen.press("q")
        shown = screen.until(lambda shown: "ended with" in shown)
        assert "ended with 0" in shown
