"""One full-duplex stream where the device allows, else two.

On one stream the microphone and the speaker run by one clock, one callback serves both, and a card that only one
program may open at a time is opened once. It must be a card, though. A sound server keeps two streams of its own
behind the one it shows, and through PulseAudio such a stream was measured to corrupt what is played, at times and
without counting a loss.

PortAudio tells a card by its name or by where it comes from:

    through         named                                  it is
    ALSA            "USB Audio: - (hw:1,0)"                a card; with sub-devices "... (hw:1,0,2) {subdevice #2}"
    ALSA            pulse, pipewire, jack, default, dmix   a plugin, named as in ALSA's files: perhaps a server's door
    Core Audio      as the system calls it                 a card, or an aggregate that the system keeps in step
    PulseAudio,
    JACK ...        as the server calls it                 a server's

Any other host lists microphones and speakers apart, or is unknown here: two streams.
"""

from __future__ import annotations

import re
import threading

from assistant.audio.devices import Device, DeviceError
from assistant.audio.line import Line
from assistant.audio.streams import Microphone, Speaker, Stream

CLOSE_PATIENCE = 1.0
"""Seconds."""
_CARD = re.compile(r"\(hw:\d+,\d+(,\d+)?\)( \{.*\})?$")


def may_share(microphone: Device, speaker: Device) -> bool:
    """Whether these two are one device, and a real one, that a single full-duplex stream may be tried on."""
    if microphone.index != speaker.index or not microphone.inputs or not speaker.outputs:
        return False
    return microphone.host == "Core Audio" or (microphone.host == "ALSA" and bool(_CARD.search(microphone.name)))


def start_both(
    microphone: Device, speaker: Device, buffer_seconds: float, latency: float | str
) -> tuple[Microphone, Speaker]:
    """Both, open and running; see `Speaker` for the numbers. Raises DeviceError, with nothing left open.

    A shared stream has that latency in both directions: where its callback is late, both sides lose sound.
    """
    if may_share(microphone, speaker):
        try:
            line = Line(microphone, "Stream", latency)
            return _started(Microphone(microphone, line), Speaker(speaker, buffer_seconds, latency, line))
        except DeviceError:
            pass  # no rate or format that both directions know: each may have its own
    ears = Microphone(microphone)
    try:
        mouth = Speaker(speaker, buffer_seconds, latency)
    except DeviceError:
        ears.close()
        raise
    return _started(ears, mouth)


def _started(microphone: Microphone, speaker: Speaker) -> tuple[Microphone, Speaker]:
    try:
        microphone.start()
        speaker.start()
    except DeviceError:
        microphone.close()
        speaker.close()
        raise
    return microphone, speaker


def close_patiently(*streams: Stream) -> threading.Thread:
    """Close them; the thread returned is alive still if that hangs."""

    def close() -> None:
        for stream in streams:
            try:
                stream.close()
            except Exception:  # of a stream that is being thrown away nothing matters any more
                continue

    thread = threading.Thread(target=close, name="sound-close", daemon=True)
    thread.start()
    thread.join(CLOSE_PATIENCE)
    return thread
