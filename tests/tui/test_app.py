"""The terminal app: its screens as text, kept beside this file, and every key.

CROSSTALK_SNAPSHOTS=1 writes the screens anew, CROSSTALK_PICTURES=1 the picture for the README: look at both.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from assistant.chat.chat import Means
from assistant.floor import Phase
from assistant.live import Status
from assistant.tui.app import ChatApp
from assistant.tui.widgets import bar, cells
from tests.tui.stage import Stage, level, play

HERE = Path(__file__).parent
PICTURE = HERE.parents[1] / "docs" / "pictures" / "chat.svg"


def on_screen(app: ChatApp) -> str:
    """What a terminal shows, a line each, without trailing space."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows) + "\n"


def run(stage: Stage, act: Callable[[ChatApp, Pilot], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    app = ChatApp(stage)  # type: ignore[arg-type]

    async def scene() -> None:
        async with app.run_test(size=size) as pilot:
            await act(app, pilot)

    asyncio.run(scene())


def compare(name: str, screen: str) -> None:
    file = HERE / "screens" / f"{name}.txt"
    if os.environ.get("CROSSTALK_SNAPSHOTS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (104, 24), (50, 16)])
def test_a_conversation_on_the_screen(width: int, height: int) -> None:
    async def act(app: ChatApp, pilot: Pilot) -> None:
        play(app)
        await pilot.pause()
        await pilot.pause()
        compare(f"conversation_{width}x{height}", on_screen(app))
        if width == 104 and os.environ.get("CROSSTALK_PICTURES"):
            PICTURE.write_text(without_fonts(app.export_screenshot(title="crosstalk chat")), encoding="utf-8")

    run(Stage(), act, (width, height))


def without_fonts(svg: str) -> str:
    """The picture without the fonts that it would fetch from elsewhere."""
    return re.sub(r"@font-face\s*{[^}]*}", "", svg)


def test_empty_muted_and_typing_screens() -> None:
    async def act(app: ChatApp, pilot: Pilot) -> None:
        app.front.status(Status(0.0, Phase.LISTENING))
        await pilot.pause()
        compare("empty", on_screen(app))
        app.front.status(Status(1.0, Phase.LISTENING, level(0.0), muted=True))
        await pilot.press("t")
        await pilot.press(*"hello [you]")
        await pilot.pause()
        compare("muted_and_typing", on_screen(app))

    run(Stage(), act)


def test_the_colours_tell_who_partial_and_unheard() -> None:
    async def act(app: ChatApp, pilot: Pilot) -> None:
        play(app)
        await pilot.pause()
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        styles = {part.text.strip(): part.style for strip in strips for part in strip if part.style is not None}
        assert any(style.strike for text, style in styles.items() if "through drops" in text)
        assert not any(style.strike for text, style in styles.items() if "A rainbow is made" in text)
        assert any(style.dim or "wait" in text for text, style in styles.items() if "wait how" in text)

    run(Stage(), act, (104, 24))


def test_keys_become_wishes() -> None:
    stage = Stage()

    async def act(app: ChatApp, pilot: Pilot) -> None:
        app.front.status(Status(1.0, Phase.SPEAKING))
        await pilot.press("space", "s", "escape", "m", "p")
        assert stage.asked == ["stop", "stop", "mute True", "push_to_talk True"]
        stage.asked.clear()
        app.front.status(Status(1.0, Phase.LISTENING, muted=True, push_to_talk=True))
        await pilot.press("m", "p", "space")
        app.front.status(Status(1.0, Phase.USER, push_to_talk=True, talking=True))
        await pilot.press("space")
        assert stage.asked == ["mute False", "push_to_talk False", "talk True", "talk False"]
        stage.asked.clear()
        await pilot.press("t", *"hi m", "enter", "escape", "s")
        assert stage.asked == ["say hi m", "stop"]
        await pilot.press("q")
        assert app._exit

    run(stage, act)


def test_choosing_a_persona_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    from assistant.audio.devices import Device, DeviceError
    from assistant.tui import app as module

    found = [
        Device(0, "USB [Monitor]", "ALSA", 1, 0, 48_000, True, False),
        Device(1, "Headphones", "ALSA", 0, 2, 48_000, False, True),
    ]
    monkeypatch.setattr(module, "list_devices", lambda: found)
    monkeypatch.setattr(module, "known_personas", lambda: ["default", "tutor"])
    stage = Stage()

    async def act(app: ChatApp, pilot: Pilot) -> None:
        await pilot.press("r")
        await pilot.pause()
        assert "Who speaks" in on_screen(app) and "tutor" in on_screen(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        await pilot.press("d")
        await pilot.pause()
        assert "USB [Monitor]" in on_screen(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert "Headphones" in on_screen(app)
        await pilot.press("down", "enter")
        await app.workers.wait_for_complete()
        assert stage.asked == ["become tutor", "use 0 1"]
        await pilot.press("r")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert len(stage.asked) == 2

        def none_left() -> list[Device]:
            raise DeviceError("the sound library [x] is missing.")

        monkeypatch.setattr(module, "list_devices", none_left)
        await pilot.press("d")
        await app.workers.wait_for_complete()
        assert [note.message for note in app._notifications] == ["the sound library [x] is missing."]

    run(stage, act)


def test_typing_only_opens_the_box_at_once() -> None:
    stage = Stage(Means(typed=True))

    async def act(app: ChatApp, pilot: Pilot) -> None:
        await pilot.press(*"hello", "enter")
        assert stage.asked == ["say hello"]
        await pilot.press("escape")
        assert stage.asked == ["say hello", "stop"]

    run(stage, act)


def test_a_narrow_terminal_keeps_the_words() -> None:
    async def act(app: ChatApp, pilot: Pilot) -> None:
        play(app)
        await pilot.pause()
        await pilot.pause()
        screen = on_screen(app)
        assert "wait how many legs" in screen and "forwarded" not in screen

    run(Stage(), act, (40, 12))


def test_meters_are_exact_to_half_a_cell() -> None:
    assert cells(0.5, 4) == "━━  " and cells(0.625, 4) == "━━╸ " and cells(2, 2) == "━━" and cells(-1, 2) == "  "
    assert bar(0.0, 5).strip() == "" and bar(1.0, 5) == "━━━━━" and bar(0.0561, 10).strip() == "━━━━━"
