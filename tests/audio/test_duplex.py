"""One full-duplex stream where the device allows, else two: which it is, and that one serves as well as two.

The sound library is a double that calls back when told to; real full-duplex streams are in test_full_duplex.py.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partialmethod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from assistant.audio import line, sound_card, streams
from assistant.audio.constants import FRAME, PLAYBACK_FRAME, PLAYBACK_RATE, SAMPLE_RATE
from assistant.audio.devices import Device, DeviceError
from assistant.audio.duplex import may_share, start_both
from assistant.audio.sound_card import LATENCIES, DeviceChange, DeviceEvent, SoundCard
from assistant.audio.streams import Microphone, Speaker

CARD = Device(3, "USB Audio: - (hw:1,0)", "ALSA", 1, 2, 16_000, True, True)


@pytest.mark.parametrize(
    ("host", "name", "shared"),
    [
        ("ALSA", "USB Audio: - (hw:1,0)", True),
        ("ALSA", "HDA Intel PCH: ALC295 Analog (hw:0,0)", True),
        ("ALSA", "Loopback: Loopback PCM (hw:2,1,3) {subdevice #3}", True),
        ("ALSA", "pulse", False),
        ("ALSA", "default", False),
        ("ALSA", "pipewire", False),
        ("ALSA", "sysdefault", False),
        ("ALSA", "dmix", False),
        ("ALSA", "jack", False),
        ("ALSA", "a name of my own for (hw:1,0), mixed", False),
        ("Core Audio", "USB Headset", True),
        ("PulseAudio", "USB Audio Analog Stereo", False),
        ("JACK Audio Connection Kit", "system", False),
        ("OSS", "/dev/dsp", False),
        ("something new", "card (hw:1,0)", False),
    ],
)
def test_which_devices_may_share_a_stream(host: str, name: str, shared: bool) -> None:
    device = replace(CARD, host=host, name=name)
    assert may_share(device, device) == shared
    assert not may_share(device, replace(device, index=4))
    assert not may_share(replace(device, inputs=0), replace(device, inputs=0))
    assert not may_share(replace(device, outputs=0), replace(device, outputs=0))


@dataclass(frozen=True)
class Flags:
    """What the sound system says of a block."""

    input_overflow: bool = False
    input_underflow: bool = False
    output_overflow: bool = False
    output_underflow: bool = False


class Library:
    """Opens the kinds of stream named, at any rate; each calls back when `block` is called."""

    class PortAudioError(Exception): ...

    def __init__(self, *kinds: str) -> None:
        self.kinds = set(kinds)
        self.starts = True
        self.tried: list[str] = []
        self.opened: list[Opened] = []

    def _open(self, kind: str, **options: Any) -> Opened:
        self.tried.append(kind)
        if kind not in self.kinds:
            raise self.PortAudioError("Invalid sample rate")
        self.opened.append(Opened(self, kind, options))
        return self.opened[-1]

    InputStream = partialmethod(_open, "InputStream")
    OutputStream = partialmethod(_open, "OutputStream")
    Stream = partialmethod(_open, "Stream")


class Opened:
    latency = (0.7, 0.02)

    def __init__(self, library: Library, kind: str, options: dict[str, Any]) -> None:
        self.library, self.kind, self.options = library, kind, options
        self.started = self.closed = 0

    def start(self) -> None:
        self.started += 1
        if not self.library.starts and self.kind == "Stream":
            raise self.library.PortAudioError("Unanticipated host error")

    def abort(self, **options: Any) -> None: ...

    def close(self, **options: Any) -> None:
        self.closed += 1

    def block(self, heard: NDArray[np.float32], flags: Flags | None = None, ahead: float = 0.01) -> NDArray[np.float32]:
        """The sound system brings a block and takes one; its buffers are its own again afterwards."""
        inward, outward = heard[:, None].copy(), np.full((len(heard), 1), 9, np.float32)
        times = SimpleNamespace(currentTime=5.0, outputBufferDacTime=5.0 + ahead)
        self.options["callback"](inward, outward, len(heard), times, flags or Flags())
        inward[:] = 9
        return outward[:, 0].copy()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library("InputStream", "OutputStream", "Stream")
    monkeypatch.setattr(line, "portaudio", lambda: library)
    monkeypatch.setattr(sound_card, "find_device", lambda wanted, speaker: CARD)
    monkeypatch.setattr(sound_card, "look_again", lambda: None)
    monkeypatch.setattr(sound_card, "attachment", lambda: None)
    monkeypatch.setattr(sound_card, "RETRY_EVERY", 0.01)
    return library


def both(device: Device = CARD) -> tuple[Microphone, Speaker]:
    return start_both(device, device, 0.04, "low")


def noise(samples: int) -> NDArray[np.float32]:
    return np.random.default_rng(3).uniform(-0.5, 0.5, samples).astype(np.float32)


def test_one_stream_hears_every_sample(library: Library) -> None:
    microphone, _ = both()
    said = noise(10 * FRAME)
    for block in said.reshape(-1, FRAME // 2):
        library.opened[0].block(block)
    heard = [microphone.read(0) for _ in range(10)]
    assert microphone.rate == SAMPLE_RATE and np.array_equal(np.concatenate(heard), said)  # type: ignore[arg-type]
    assert microphone.read(0) is None


def test_one_stream_says_every_sample(library: Library) -> None:
    _, speaker = both(replace(CARD, default_rate=PLAYBACK_RATE))
    said = noise(10 * PLAYBACK_FRAME)
    played = []
    for frame in said.reshape(-1, PLAYBACK_FRAME):
        speaker.write(frame)
        played += [library.opened[0].block(np.zeros(240, np.float32)) for _ in range(2)]
    played += [library.opened[0].block(np.zeros(240, np.float32)) for _ in range(6)]
    lead = round(0.04 * PLAYBACK_RATE)
    heard = np.concatenate(played)
    assert not heard[:lead].any() and np.array_equal(heard[lead : lead + len(said)], said)


def test_a_drop_and_a_wake_on_one_stream(library: Library) -> None:
    microphone, speaker = both(replace(CARD, default_rate=PLAYBACK_RATE))
    for frame in noise(5 * PLAYBACK_FRAME).reshape(-1, PLAYBACK_FRAME):
        speaker.write(frame)
    for _ in range(5):
        library.opened[0].block(np.zeros(240, np.float32))
    speaker.drop()
    assert library.opened[0].block(np.zeros(240, np.float32))[-1] == 0.0
    assert not library.opened[0].block(np.zeros(240, np.float32)).any()
    microphone.wake()
    while microphone.read(0) is not None:
        pass
    assert microphone._blocks.empty()


def test_it_is_started_once_and_closed_once(library: Library) -> None:
    microphone, speaker = both()
    assert library.tried == ["Stream"] and library.opened[0].started == 1 and microphone.line is speaker.line
    speaker.close()
    microphone.close()
    assert library.opened[0].closed == 1
    library.opened[0].options["finished_callback"]()
    assert microphone.finished and speaker.finished


def test_losses_are_counted_on_the_side_that_has_them(library: Library) -> None:
    microphone, speaker = both()
    for flags in (
        Flags(input_overflow=True),
        Flags(input_underflow=True, output_underflow=True),
        Flags(output_overflow=True),
        Flags(output_underflow=True),
        Flags(),
    ):
        library.opened[0].block(np.zeros(160, np.float32), flags)
    assert (microphone.xruns, speaker.xruns) == (2, 3)


@pytest.mark.parametrize(("ahead", "wanted"), [(0.01, 0.01), (0.0, 0.02), (-5.0, 0.02), (60.0, 0.02)])
def test_where_the_times_are_missing_the_outputs_latency_counts(ahead: float, wanted: float, library: Library) -> None:
    """A full-duplex stream has one latency for each direction."""
    microphone, _ = both()
    told: list[float] = []
    microphone.line.say = lambda samples, ahead, lost: told.append(ahead)
    library.opened[0].block(np.zeros(160, np.float32), ahead=ahead)
    assert told == pytest.approx([wanted])


def test_a_shared_stream_that_does_not_open_becomes_two(library: Library) -> None:
    library.kinds.remove("Stream")
    microphone, speaker = both()
    rates = len({CARD.default_rate, *line.OTHER_RATES})
    assert library.tried == ["Stream"] * rates + ["InputStream", "OutputStream"]
    assert microphone.line is not speaker.line and [stream.started for stream in library.opened] == [1, 1]


def test_a_shared_stream_that_does_not_start_becomes_two(library: Library) -> None:
    library.starts = False
    microphone, speaker = both()
    assert [stream.kind for stream in library.opened] == ["Stream", "InputStream", "OutputStream"]
    assert [stream.closed for stream in library.opened] == [1, 0, 0] and microphone.line is not speaker.line


def test_where_nothing_opens_nothing_stays_open(library: Library) -> None:
    library.kinds = {"InputStream"}
    with pytest.raises(DeviceError, match="does not open at any rate"):
        both()
    assert [stream.closed for stream in library.opened] == [1]


def test_two_devices_have_two_streams(library: Library) -> None:
    microphone, speaker = start_both(CARD, replace(CARD, index=4), 0.04, 0.05)
    assert library.tried == ["InputStream", "OutputStream"] and microphone.line is not speaker.line
    assert [stream.options["latency"] for stream in library.opened] == ["low", 0.05]


# --- the watchdog -----------------------------------------------------------------------------------------------

Events = queue.Queue[DeviceEvent]


@pytest.fixture
def told() -> Events:
    return queue.Queue()


@pytest.fixture
def card(library: Library, told: Events, monkeypatch: pytest.MonkeyPatch) -> Iterator[SoundCard]:
    monkeypatch.setattr(streams.Stream, "silent_for", lambda self: 0.0)
    with SoundCard(on_event=told.put) as card:
        yield card


def until(card: SoundCard, happened: Callable[[], bool]) -> None:
    """Read until something has happened, ten seconds of sound at most."""
    for _ in range(10 * SAMPLE_RATE // FRAME):
        if happened():
            return
        card.read()
    raise AssertionError("nothing happened within 10 s")


def strain(card: SoundCard) -> None:
    """What a sound system reports that was not served in time."""
    assert card._streams is not None
    card._streams.speaker.xruns += 10


def test_a_shared_stream_that_was_ended_is_opened_again(card: SoundCard, library: Library, told: Events) -> None:
    library.opened[0].options["finished_callback"]()
    lost = told.get(timeout=10)
    assert lost.change is DeviceChange.LOST and CARD.name in lost.text
    assert told.get(timeout=10).change is DeviceChange.BACK
    assert [stream.kind for stream in library.opened] == ["Stream", "Stream"]
    assert [stream.closed for stream in library.opened] == [1, 0] and card.stats.lost == 1


def test_a_busy_machine_gets_larger_buffers_on_another_shared_stream(
    card: SoundCard, library: Library, told: Events
) -> None:
    for count in range(2, len(LATENCIES) + 1):
        strain(card)
        until(card, lambda count=count: len(library.opened) == count and card.names[0] != "")  # type: ignore[misc]
    assert [stream.kind for stream in library.opened] == ["Stream"] * len(LATENCIES)
    assert [stream.options["latency"] for stream in library.opened] == list(LATENCIES)
    assert [stream.closed for stream in library.opened] == [1, 1, 0]
    assert card.stats.output_xruns == 20 and card.stats.lost == 0 and told.empty()


def test_where_the_calmer_stream_does_not_open_the_device_counts_as_lost(
    card: SoundCard, library: Library, told: Events
) -> None:
    kinds, library.kinds = library.kinds, set()
    strain(card)
    lost = told.get(timeout=10)
    assert lost.change is DeviceChange.LOST and "does not open" in lost.text
    library.kinds = kinds
    assert told.get(timeout=10).change is DeviceChange.BACK
    assert library.opened[-1].options["latency"] == LATENCIES[1] and card.stats.lost == 1
