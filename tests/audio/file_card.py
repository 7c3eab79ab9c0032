"""A sound card made of two files, for a process of its own: PortAudio reads ALSA's configuration once.

Nothing paces such a card, it takes and gives as fast as it is asked. So a block is let through for each that is
wanted, and the result is the same on every machine.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np

from assistant.audio import duplex
from assistant.audio.constants import PLAYBACK_FRAME, SAMPLE_RATE
from assistant.audio.devices import list_devices
from assistant.audio.line import Line

CONFIGURATION = """
pcm.default {{ type null }}
pcm.files {{
    type asym
    playback.pcm {{ type file  format raw  file "{folder}/played.raw"  slave.pcm {{ type null }} }}
    capture.pcm {{
        type file  format raw  file "/dev/null"  infile "{folder}/spoken.raw"  slave.pcm {{ type null }}
    }}
}}
"""
"""What ALSA_CONFIG_PATH names; the files hold float32 at SAMPLE_RATE. Without a default PortAudio aborts."""

_permits = Semaphore(0)


class Paced(Line):
    """Waits for a permit before each block."""

    def _both(self, *arguments: Any) -> None:
        _permits.acquire(timeout=20)
        super()._both(*arguments)


def main(folder: Path) -> None:
    """Hear spoken.raw into heard.raw, say said.raw (at PLAYBACK_RATE), frame by frame; print what is to be known."""
    listed = next(device for device in list_devices() if device.name == "files")
    device = replace(listed, default_rate=SAMPLE_RATE)
    duplex.Line, duplex.may_share = Paced, lambda microphone, speaker: True  # type: ignore[misc, assignment]
    microphone, speaker = duplex.start_both(device, device, 0.04, "low")
    heard = []
    for frame in np.fromfile(folder / "said.raw", np.float32).reshape(-1, PLAYBACK_FRAME):
        _permits.release(2)
        if (one := microphone.read(20)) is None:
            break
        heard.append(one)
        speaker.write(frame)
    _permits.release(1000)
    speaker.close()
    microphone.close()
    np.concatenate(heard).tofile(folder / "heard.raw")
    counts = {"inputs": device.inputs, "outputs": device.outputs, "rate": microphone.rate, "xruns": speaker.xruns}
    print(json.dumps(counts | {"shared": microphone.line is speaker.line, "underflows": speaker.underflows}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
