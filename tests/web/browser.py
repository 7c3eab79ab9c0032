"""A real Chromium whose microphone is a recording, and ears inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import BrowserContext, Page, sync_playwright

from assistant.audio.constants import SAMPLE_RATE

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
]

# Notes what the speaker plays and how loud it is in stretches of 5 ms, when the page is told to drop its sound and when
# a key is pressed: on the speaker's own clock, because a busy page is late and its sound is not.
EARS = """
window.drops = [];
window.peaks = [];
window.heard = [];
window.pressed = 0;
window.now = () => 1000 * (window.speaker?.currentTime ?? 0);
addEventListener("keydown", () => (window.pressed = window.now()), true);
window.WebSocket = class extends WebSocket {
  constructor(...args) {
    super(...args);
    this.addEventListener("message", ({ data }) => {
      if (typeof data === "string" && data.startsWith('{"type":"drop"')) window.drops.push(window.now());
    });
  }
};
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...rest) {
  if (target instanceof AudioDestinationNode && this.context.sampleRate === 24000) {
    window.speaker = this.context;
    const ear = this.context.createScriptProcessor(256, 1, 1);
    ear.onaudioprocess = ({ inputBuffer, playbackTime }) => {
      const sound = inputBuffer.getChannelData(0);
      window.heard.push(...Int16Array.from(sound, (value) => value * 32767));
      for (let i = 0; i < 2; i++) {
        const part = sound.subarray(128 * i, 128 * (i + 1));
        const end = 1000 * (playbackTime - (128 * (1 - i)) / 24000);
        window.peaks.push([end, Math.max(...part.map(Math.abs))]);
      }
    };
    connect.call(this, ear);
    connect.call(ear, target);
  }
  return connect.call(this, target, ...rest);
};
"""


def write_microphone(path: Path, recording: Path, lead: float = 0.5, tail: float = 10.0) -> Path:
    """The recording as Chromium's fake microphone wants it: 16-bit WAV, silence around it."""
    sound, rate = soundfile.read(recording, dtype="float32")
    assert rate == SAMPLE_RATE
    silence: list[NDArray[np.float32]] = [np.zeros(round(s * rate), np.float32) for s in (lead, tail)]
    soundfile.write(path, np.concatenate([silence[0], sound, silence[1]]), rate, subtype="PCM_16")
    return path


@contextmanager
def chromium(microphone: Path | None = None, **context: Any) -> Iterator[BrowserContext]:
    """A browser with one profile; what goes wrong in its pages is in `context.troubles`."""
    sound = [f"--use-file-for-fake-audio-capture={microphone}%noloop"] if microphone is not None else []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS, *sound])
        opened = browser.new_context(**{"viewport": {"width": 1180, "height": 820}, **context})
        opened.add_init_script(EARS)
        yield opened
        browser.close()


class Watched:
    """A page, what it loaded, and what went wrong in it."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.loaded: list[str] = []
        self.troubles: list[str] = []
        self.page.on("request", lambda request: self.loaded.append(request.url))
        self.page.on("websocket", lambda socket: self.loaded.append(socket.url))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", lambda message: self.troubles.append(message.text) if message.type == "error" else None)

    def open(self, address: str) -> None:
        """Go there and wait for the conversation."""
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready=yes]")

    def lines(self) -> list[str]:
        """The transcript, a line each."""
        return [text.replace("\n", " ") for text in self.page.locator("#lines li").all_inner_texts()]
