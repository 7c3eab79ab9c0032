"""Cases 22 and 23 without a sound server: each way in which a stream dies without an exception, and the way back.

The sound library is a double that can be told to fall silent; everything above it is real.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from assistant.audio import line, sound_card, streams
from assistant.audio.devices import Device, DeviceError
from assistant.audio.pulse import Attachment
from assistant.audio.sound_card import DeviceChange, DeviceEvent, SoundCard

DEVICE = Device(0, "plug", "test", 1, 1, 48_000, True, True)


class Library:
    """Streams that open, start, and never call back."""

    class PortAudioError(Exception): ...

    def __init__(self) -> None:
        self.opened: list[Silent] = []

    def _open(self, finished_callback: Any, **options: Any) -> Silent:
        self.opened.append(Silent(finished_callback))
        return self.opened[-1]

    InputStream = OutputStream = _open


class Silent:
    latency = 0.01

    def __init__(self, finished: Any) -> None:
        self.finished = finished
        self.closed = False

    def start(self) -> None: ...

    def abort(self, **options: Any) -> None: ...

    def close(self, **options: Any) -> None:
        self.closed = True


Events = queue.Queue[DeviceEvent]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setattr(line, "portaudio", lambda: library)
    monkeypatch.setattr(sound_card, "find_device", lambda wanted, speaker: DEVICE)
    monkeypatch.setattr(sound_card, "look_again", lambda: None)
    monkeypatch.setattr(sound_card, "attachment", lambda: None)
    return library


@pytest.fixture
def told() -> Events:
    return queue.Queue()


@pytest.fixture
def card(library: Library, told: Events) -> Iterator[SoundCard]:
    with SoundCard(on_event=told.put) as card:
        yield card


def alive(card: SoundCard, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no stream is taken for silent."""
    monkeypatch.setattr(streams.Stream, "silent_for", lambda self: 0.0)


def test_a_stream_that_no_longer_calls_is_opened_again(
    card: SoundCard, library: Library, told: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = told.get(timeout=10)
    assert lost.change is DeviceChange.LOST and "does not answer" in lost.text
    alive(card, monkeypatch)
    back = told.get(timeout=10)
    assert back.change is DeviceChange.BACK and "plug" in back.text
    assert card.stats.lost >= 1 and all(stream.closed for stream in library.opened[:2])
    assert len(library.opened) >= 4 and not library.opened[-1].closed


@pytest.mark.parametrize(("which", "name"), [(0, "microphone"), (1, "speaker")])
def test_a_stream_that_was_ended_is_opened_again(
    which: int, name: str, library: Library, told: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams.Stream, "silent_for", lambda self: 0.0)
    with SoundCard(on_event=told.put):
        library.opened[which].finished()
        lost = told.get(timeout=10)
        assert lost.change is DeviceChange.LOST and name in lost.text and "closed" in lost.text
        assert told.get(timeout=10).change is DeviceChange.BACK


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (Attachment("other", "out", "mic", "out"), "the microphone mic is gone"),
        (Attachment("mic", "other", "mic", "out"), "the speaker out is gone"),
        (Attachment("mic", "out", "other", "out"), "the default microphone is now other"),
        (Attachment("mic", "out", "mic", "other"), "the default speaker is now other"),
    ],
)
def test_a_device_that_was_silently_replaced_is_noticed(
    now: Attachment, says: str, library: Library, told: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams.Stream, "silent_for", lambda self: 0.0)
    monkeypatch.setattr(sound_card, "attachment", lambda: Attachment("mic", "out", "mic", "out"))
    with SoundCard(on_event=told.put) as card:
        monkeypatch.setattr(sound_card, "attachment", lambda: now)
        card._pulse.stirred.set()
        assert says in told.get(timeout=10).text
        assert told.get(timeout=10).change is DeviceChange.BACK


def test_it_is_tried_until_the_device_is_there(library: Library, told: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.Stream, "silent_for", lambda self: 0.0)
    monkeypatch.setattr(sound_card, "RETRY_EVERY", 0.01)
    tries: list[bool] = []

    def find(wanted: str | int | None, speaker: bool) -> Device:
        tries.append(speaker)
        if len(tries) < 4:
            raise DeviceError("there is no microphone")
        return DEVICE

    with SoundCard(on_event=told.put) as card:
        monkeypatch.setattr(sound_card, "find_device", find)
        library.opened[0].finished()
        assert told.get(timeout=10).change is DeviceChange.LOST
        assert told.get(timeout=10).change is DeviceChange.BACK
        assert len(tries) >= 4 and card.names == ("plug", "plug")
