"""The microphone and the speaker of a conversation, kept alive: lost devices are noticed, said, and opened again.

A lost device never shows as an exception. Its callbacks stop while the stream calls itself active, or they go on from
another device, or only the stream's end is reported; and closing it may hang. So a watchdog looks at the signs of
life, and whatever may hang is done on a thread that nobody waits for.

    OPEN ── no callback for half a second, ended, moved elsewhere ──► LOST ── opened again ──► OPEN

While it is LOST the microphone is silence at the same pace, so the conversation's clock goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.audio.devices import DeviceError, find_device, look_again
from assistant.audio.duplex import close_patiently, start_both
from assistant.audio.pulse import Attachment, PulseWatch, attachment
from assistant.audio.streams import Microphone, Speaker

FRAME_SECONDS = FRAME / SAMPLE_RATE
LOOK_EVERY = 0.2
SILENT_AFTER = 0.6
"""Seconds without a callback that mean the stream is dead; a busy machine delays one by a tenth."""
RETRY_EVERY = 0.5
STRAIN = 5
"""Losses of the speaker within STRAIN_SECONDS that mean the machine is too busy for so small a device buffer."""
STRAIN_SECONDS = 10.0
LATENCIES: tuple[float | str, ...] = ("low", 0.05, 0.1)
"""Device buffers of the speaker, from the quickest to the calmest; never back, lest it go to and fro."""


class DeviceChange(StrEnum):
    """What happened to the sound devices."""

    LOST = "lost"
    BACK = "back"


@dataclass(frozen=True)
class DeviceEvent:
    """Something to tell the user; `text` is a sentence."""

    change: DeviceChange
    text: str


@dataclass(frozen=True)
class SoundStats:
    """Counts since the card was opened, over all streams it has had."""

    input_xruns: int = 0
    output_xruns: int = 0
    underflows: int = 0
    dropped_samples: int = 0
    lost: int = 0

    def plus(self, microphone: Microphone, speaker: Speaker) -> SoundStats:
        """The counts with those of these streams added."""
        return SoundStats(
            self.input_xruns + microphone.xruns,
            self.output_xruns + speaker.xruns,
            self.underflows + speaker.underflows,
            self.dropped_samples + microphone.dropped,
            self.lost,
        )


@dataclass(frozen=True)
class _Streams:
    microphone: Microphone
    speaker: Speaker
    attached: Attachment | None

    @property
    def shared(self) -> bool:
        return self.microphone.line is self.speaker.line


class SoundCard:
    """`read` a frame, give it to the conversation, `write` what it answers; from one thread."""

    def __init__(
        self,
        microphone: str | int | None = None,
        speaker: str | int | None = None,
        on_event: Callable[[DeviceEvent], None] = lambda event: None,
        buffer_seconds: float = 0.04,
    ) -> None:
        """`on_event` is called from the watchdog's thread."""
        self._wanted = (microphone, speaker)
        self._on_event = on_event
        self._buffer_seconds = buffer_seconds
        self._streams: _Streams | None = None
        self._before = SoundStats()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._pulse = PulseWatch()
        self._calm = 0
        """Which of LATENCIES the speaker has."""
        self._strained = (0, 0.0)
        """Losses of the speaker, and when they were counted."""
        self._frames = 0
        self._frame_at = 0.0
        self._watchdog = threading.Thread(target=self._watch, name="sound-watchdog", daemon=True)

    def open(self) -> None:
        """Open both devices; raises DeviceError. From then on lost devices are opened again until `close`."""
        self._streams = self._try()
        self._frame_at = time.monotonic()
        self._watchdog.start()

    def __enter__(self) -> SoundCard:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the devices and stop watching."""
        self._closing.set()
        self._wake.set()
        if self._watchdog.ident:
            self._watchdog.join(10)
        if self._streams is not None:
            close_patiently(self._streams.microphone, self._streams.speaker)
        self._streams = None
        self._pulse.close()

    # --- the conversation's side ------------------------------------------------------------------------------

    def read(self, deliver: Callable[[], None] = lambda: None) -> NDArray[np.float32]:
        """Wait for the next 20 ms of the microphone, float32 [320]; `deliver` is called whenever `wake` was."""
        while True:
            streams = self._streams
            frame = self._silence() if streams is None else streams.microphone.read(5 * FRAME_SECONDS)
            if self._wake.is_set():
                self._wake.clear()
                deliver()
            if frame is not None:
                self._frames += 1
                self._frame_at = time.monotonic()
                return frame
            if streams is not None and time.monotonic() - self._frame_at > SILENT_AFTER:
                # Dead already, though the watchdog has not said so yet: the clock must not stand still.
                return self._stand_in()

    def write(self, frame: NDArray[np.float32]) -> None:
        """Play 20 ms, float32 [480] at 24 kHz; dropped while the speaker is lost."""
        if self._streams is not None:
            self._streams.speaker.write(frame)

    def drop(self) -> None:
        """Fade out at once and forget what is not in the air yet."""
        if self._streams is not None:
            self._streams.speaker.drop()

    @property
    def delay(self) -> int:
        """Samples at 24 kHz that were written and are not in the air yet."""
        return self._streams.speaker.delay if self._streams is not None else 0

    def wake(self) -> None:
        """Work has come in (any thread): `read` calls its `deliver`."""
        self._wake.set()
        if (streams := self._streams) is not None:
            streams.microphone.wake()

    def now(self) -> float:
        """Seconds on the audio clock: the frames read, and the time since the last one."""
        return self._frames * FRAME_SECONDS + min(time.monotonic() - self._frame_at, FRAME_SECONDS)

    @property
    def names(self) -> tuple[str, str]:
        """Microphone and speaker in use; empty while lost."""
        streams = self._streams
        return (streams.microphone.device.name, streams.speaker.device.name) if streams else ("", "")

    @property
    def stats(self) -> SoundStats:
        """What went wrong so far."""
        streams = self._streams
        return self._before.plus(streams.microphone, streams.speaker) if streams else self._before

    def _silence(self) -> NDArray[np.float32] | None:
        left = self._frame_at + FRAME_SECONDS - time.monotonic()
        if left > 0 and self._wake.wait(left):
            return None
        return np.zeros(FRAME, np.float32)

    def _stand_in(self) -> NDArray[np.float32]:
        self._frames += 1
        return np.zeros(FRAME, np.float32)

    # --- the watchdog's side ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_EVERY):
            streams = self._streams
            if streams is None:
                continue
            if not (trouble := self._trouble(streams)):
                self._ease(streams)
                continue
            self._forget(streams)
            self._say_lost(trouble)
            self._reopen(close_patiently(streams.microphone, streams.speaker))

    def _forget(self, streams: _Streams) -> None:
        self._streams = None
        self._before = self._before.plus(streams.microphone, streams.speaker)
        self._strained = (0, time.monotonic())
        streams.microphone.wake()

    def _say_lost(self, trouble: str) -> None:
        self._before = replace(self._before, lost=self._before.lost + 1)
        self._on_event(DeviceEvent(DeviceChange.LOST, f"{trouble}; trying again."))

    def _reopen(self, still_closing: threading.Thread) -> None:
        while not self._closing.is_set():
            try:
                if not still_closing.is_alive():  # PortAudio must not be restarted under a stream
                    look_again()
                    self._pulse.close()
                    self._pulse = PulseWatch()
                self._streams = self._try()
                self._on_event(DeviceEvent(DeviceChange.BACK, f"the sound is back: {' and '.join(self.names)}."))
                return
            except Exception:  # whatever PortAudio makes of a half-gone system: it is tried again
                self._closing.wait(RETRY_EVERY)

    def _try(self) -> _Streams:
        ears, mouth = find_device(self._wanted[0], speaker=False), find_device(self._wanted[1], speaker=True)
        microphone, speaker = start_both(ears, mouth, self._buffer_seconds, LATENCIES[self._calm])
        self._pulse.stirred.clear()
        return _Streams(microphone, speaker, attachment())

    def _ease(self, streams: _Streams) -> None:
        """Give the speaker a larger buffer if this machine is too busy for its own, while it is silent."""
        count, since = self._strained
        now, losses = time.monotonic(), streams.speaker.xruns
        if now - since > STRAIN_SECONDS or losses < count:
            self._strained = (losses, now)
        if losses - count < STRAIN or streams.speaker.sounding or self._calm + 1 >= len(LATENCIES):
            return
        self._calm += 1
        if streams.shared:
            self._renew(streams)
            return
        try:
            speaker = Speaker(streams.speaker.device, self._buffer_seconds, LATENCIES[self._calm])
            speaker.start()
        except DeviceError:
            return  # the old one still plays
        self._streams = replace(streams, speaker=speaker)
        self._strained = (0, now)
        self._before = replace(
            self._before,
            output_xruns=self._before.output_xruns + losses,
            underflows=self._before.underflows + streams.speaker.underflows,
        )
        close_patiently(streams.speaker)

    def _renew(self, streams: _Streams) -> None:
        """Both anew on a calmer stream. The old one goes first, since most cards open once: the ears miss a moment."""
        self._forget(streams)
        closing = close_patiently(streams.microphone, streams.speaker)
        try:
            self._streams = self._try()
        except Exception as error:  # see _reopen
            self._say_lost(str(error).rstrip("."))
            self._reopen(closing)

    def _trouble(self, streams: _Streams) -> str:
        """What is wrong with the streams, in words; empty if they live."""
        for what, stream in (("microphone", streams.microphone), ("speaker", streams.speaker)):
            if stream.finished:
                return f"the {what} '{stream.device.name}' was closed by the system"
            if stream.silent_for() > SILENT_AFTER:
                return f"the {what} '{stream.device.name}' does not answer"
        if self._pulse.stirred.is_set():
            self._pulse.stirred.clear()
            return self._moved(streams.attached)
        return ""

    def _moved(self, before: Attachment | None) -> str:
        now = attachment()
        if before is None or now is None:
            return ""
        if now.source != before.source and before.source:
            return f"the microphone {before.source} is gone"
        if now.sink != before.sink and before.sink:
            return f"the speaker {before.sink} is gone"
        if self._wanted[0] is None and now.default_source != before.default_source:
            return f"the default microphone is now {now.default_source}"
        if self._wanted[1] is None and now.default_sink != before.default_sink:
            return f"the default speaker is now {now.default_sink}"
        return ""
