"""The page in a real browser: a whole spoken conversation, an interruption, a reload, a second tab, no mouse."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.resample import resample
from assistant.build import Parts
from assistant.ears.hypothesis import Mode
from assistant.overlap import plain_words
from tests.web.conftest import ROOT, Serve

pytestmark = pytest.mark.browser

RECORDING = ROOT / "demo" / "conversation.flac"
"""Four turns; the third cuts into the second's answer."""
SILENT = 0.003
STOP_WITHIN = 60.0
"""Milliseconds."""


def silent_after(moment: float, peaks: list[tuple[float, float]]) -> float:
    """Milliseconds from `moment` to the last sound before half a second of silence."""
    last = moment
    for at, peak in peaks:
        if at - last > 500:
            break
        if at > moment and peak > SILENT:
            last = at
    return last - moment


def test_a_spoken_conversation(serve: Serve, tmp_path: Path, pictures: Path) -> None:
    from tests.web.browser import Watched, chromium, write_microphone

    service = serve()
    microphone = write_microphone(tmp_path / "microphone.wav", RECORDING)
    with chromium(microphone, device_scale_factor=1.5) as context:
        tab = Watched(context)
        page = tab.page
        tab.open(service.address())
        page.click("#start")
        page.wait_for_selector("#lines .assistant:nth-of-type(8)", timeout=60_000)
        page.wait_for_selector("body[data-phase=listening]", timeout=30_000)

        lines = tab.lines()
        assert len(lines) == 8
        assert plain_words(lines[0]) == plain_words("You What is the capital of France?")
        assert "Paris" in lines[1] and "rainbow" in lines[2] and "eight legs" in lines[5]
        assert page.locator("#lines del").count() == 1, "one answer was cut off"
        assert page.locator("#lines li:nth-of-type(4) del").count() == 1
        assert page.inner_text("#voice-to-voice").endswith(" ms") and page.inner_text("#reused").isdigit()

        drops, peaks = page.evaluate("[window.drops, window.peaks]")
        assert drops and all(silent_after(drop, peaks) <= STOP_WITHIN for drop in drops)

        # Nothing from elsewhere, nothing broken.
        hosts = {url.split("/")[2] for url in tab.loaded}
        assert hosts == {f"127.0.0.1:{service.port}"} and not tab.troubles

        pictures.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=pictures / "web.png")

        page.reload()
        page.wait_for_selector("body[data-ready=yes]")
        assert tab.lines() == lines, "a reload finds the conversation as it was"
        page.wait_for_selector("body[data-started=yes]")  # the microphone was allowed before: it goes on by itself

        second = Watched(context)
        second.open(f"http://127.0.0.1:{service.port}/")
        assert second.lines() == lines
        page.wait_for_selector("#trouble:has-text('another tab')")
        page.click("#trouble button")
        page.wait_for_selector("#trouble", state="hidden")
        second.page.wait_for_selector("#trouble:has-text('another tab')")


def test_a_typed_conversation_without_a_mouse_on_a_phone(serve: Serve) -> None:
    from tests.web.browser import Watched, chromium

    service = serve()
    with chromium(viewport={"width": 380, "height": 720}, color_scheme="dark", has_touch=True) as context:
        tab = Watched(context)
        page = tab.page
        tab.open(service.address())
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "text"
        page.keyboard.type("What is the capital of France?")
        page.keyboard.press("Enter")
        page.wait_for_selector("#lines .assistant:has-text('Paris')", timeout=20_000)
        page.wait_for_selector("body[data-phase=speaking]", timeout=20_000)
        page.wait_for_selector("body[data-phase=listening]", timeout=20_000)
        assert page.evaluate("Math.max(...window.peaks.map(([, peak]) => peak))") > 0.05, "the answer was spoken"
        assert page.get_attribute("#lines", "aria-live") == "polite", "who only types may want the answers read"
        assert page.inner_text("#spoken").startswith("You said")

        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("p")
        page.wait_for_selector("#push[aria-pressed=true]")
        page.wait_for_selector("#hold:visible")
        page.keyboard.down(" ")
        page.wait_for_selector("#hold.down")
        page.keyboard.up(" ")
        page.wait_for_selector("#hold:not(.down)")
        page.keyboard.press("m")
        page.wait_for_selector("#mute[aria-pressed=true]")

        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, "nothing sticks out of a phone's screen"
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select, canvas')].filter((e) => !(e.innerText.trim()"
            " || e.ariaLabel || e.labels?.length)).length"
        )
        assert unnamed == 0 and not tab.troubles


def test_the_stop_key_is_obeyed_at_once_and_what_is_kept_is_what_was_heard(serve: Serve, parts: Parts) -> None:
    from tests.web.browser import Watched, chromium

    service = serve()
    with chromium() as context:
        tab = Watched(context)
        page = tab.page
        tab.open(service.address())
        waits = []
        for _ in range(3):
            page.evaluate("window.heard = []")
            page.fill("#text", "Tell me how a rainbow is made.")
            page.press("#text", "Enter")
            page.wait_for_selector("body[data-phase=speaking]", timeout=20_000)
            page.wait_for_timeout(700)  # a person takes as long to find the key
            page.keyboard.press("Escape")
            page.wait_for_selector("body[data-phase=listening]")
            page.wait_for_timeout(600)
            pressed, peaks = page.evaluate("[window.pressed, window.peaks]")
            waits.append(silent_after(pressed, peaks))
        print("silent after", [f"{wait:.0f} ms" for wait in waits])
        assert sorted(waits)[1] <= STOP_WITHIN
        cut = page.locator("#lines .assistant").last
        assert cut.locator("del").inner_text()
        kept = plain_words(cut.locator(".words").inner_text())
        sound = np.array(page.evaluate("window.heard"), np.float32) / 32768
        heard = plain_words(parts.transcriber.transcribe(resample(sound, PLAYBACK_RATE, SAMPLE_RATE), Mode.FULL).text)
        print("kept", kept, "heard", heard)
        # A recogniser mishears a second of speech now and then, and guesses at a word cut in two.
        alike = SequenceMatcher(None, " ".join(kept), " ".join(heard)).ratio()
        assert kept and abs(len(kept) - len(heard)) <= 1 and alike > 0.7


def test_a_lost_connection_comes_back(serve: Serve) -> None:
    from tests.web.browser import Watched, chromium

    service = serve()
    with chromium() as context:
        tab = Watched(context)
        tab.open(service.address())
        tab.page.fill("#text", "What is the capital of France?")
        tab.page.press("#text", "Enter")
        tab.page.wait_for_selector("#lines .assistant")
        place = service.house._places[0]
        tab.page.evaluate("document.body.dataset.ready = 'no'")
        loop_client = place.client
        assert loop_client is not None
        loop_client._loop.call_soon_threadsafe(loop_client.close, 1012, "")  # type: ignore[attr-defined]
        tab.page.wait_for_selector("body[data-ready=yes]")
        assert "Paris" in " ".join(tab.lines())
