"""Microphones and speakers of this machine. PortAudio is loaded when a function here is called, not before."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assistant.audio.errors import AudioError
from assistant.errors import ExitCode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DeviceError(AudioError):
    """No such device, or it cannot be opened, or PortAudio is not installed."""

    exit_code = ExitCode.DEVICE


@dataclass(frozen=True)
class Device:
    """One sound device as PortAudio lists it."""

    index: int
    name: str
    host: str  # the sound system it is reached through: ALSA, Core Audio, ...
    inputs: int  # channels
    outputs: int
    default_rate: int  # Hz
    default_input: bool
    default_output: bool


def portaudio() -> Any:
    """The `sounddevice` module; DeviceError says what to install if PortAudio is not there."""
    try:
        import sounddevice
    except (OSError, ImportError) as error:
        how = {
            "linux": "install it, e.g. `sudo apt-get install libportaudio2` (Fedora: portaudio)",
            "darwin": "install it with `brew install portaudio`",
        }.get(sys.platform, "install it")
        raise DeviceError(f"the sound library PortAudio is missing: {how}.") from error
    return sounddevice


def list_devices() -> list[Device]:
    """Every device, in PortAudio's order."""
    sound = portaudio()
    try:
        hosts = sound.query_hostapis()
        listed = sound.query_devices()
    except sound.PortAudioError as error:
        raise DeviceError(f"the sound system does not answer ({error}); is a sound server running?") from error
    # Without devices PortAudio gives -1, and sounddevice passes it on.
    default_input, default_output = sound.default.device
    return [
        Device(
            index=number,
            name=str(entry["name"]),
            host=str(hosts[entry["hostapi"]]["name"]),
            inputs=int(entry["max_input_channels"]),
            outputs=int(entry["max_output_channels"]),
            default_rate=round(entry["default_samplerate"]),
            default_input=number == default_input,
            default_output=number == default_output,
        )
        for number, entry in enumerate(listed)
    ]


def play(pcm: NDArray[np.float32], rate: int, device: str | int | None = None) -> None:
    """Play mono sound, float32 at `rate`, to its end on a speaker (default: the system's)."""
    from assistant.audio.resample import resample

    sound = portaudio()
    try:
        own_rate = round(sound.query_devices(device, "output")["default_samplerate"])
        # The device's own rate is the one that always opens.
        sound.play(resample(pcm, rate, own_rate), own_rate, device=device, blocking=True)
    except (sound.PortAudioError, ValueError) as error:
        raise DeviceError(f"the speaker cannot be used ({error}); `crosstalk devices` lists what is there.") from error


def find_device(wanted: str | int | None, *, speaker: bool) -> Device:
    """The device of that number, or whose name contains that text (any case); None means the system's default.

    Raises DeviceError, naming what there is.
    """
    what = "speaker" if speaker else "microphone"
    able = [device for device in list_devices() if (device.outputs if speaker else device.inputs)]
    if not able:
        raise DeviceError(f"there is no {what}; plug one in, or start the sound server.")
    if wanted is None:
        return next((d for d in able if (d.default_output if speaker else d.default_input)), able[0])
    text = str(wanted).strip()
    exact = [d for d in able if text in (str(d.index), d.name)]
    near = exact or [d for d in able if text.lower() in d.name.lower()]
    if not near:
        names = ", ".join(f"{d.index} {d.name}" for d in able)
        raise DeviceError(f"there is no {what} '{wanted}'; there are: {names}.")
    return near[0]


def look_again() -> None:
    """Make PortAudio list the devices anew. It ends every open stream of this process: close them first."""
    sound = portaudio()
    sound._terminate()
    sound._initialize()
