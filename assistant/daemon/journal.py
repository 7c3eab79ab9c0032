"""What the log, and where asked for the disk, keep of a conversation."""

from __future__ import annotations

import json
import os
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME, SAMPLE_RATE
from assistant.daemon.config import PrivacyChoice
from assistant.daemon.log import Log
from assistant.live import FrontEnd
from assistant.recorder import Recorder
from assistant.timeline.events import Event, EventType, Turn

HOUR = 3600 * SAMPLE_RATE // FRAME
"""Frames of one recording."""
_TOLD = {EventType.DEVICE: "text", EventType.PERSONA: "text", EventType.COMPACTED: "reason", EventType.WAKE: None}


class Journal(FrontEnd):
    """Logs events without their words (at `debug`: with them), keeps transcripts and recordings if that was chosen."""

    def __init__(self, folder: Path, choice: PrivacyChoice, log: Log) -> None:
        self._folder = folder
        self._choice = choice
        self._log = log
        self._recorder: Recorder | None = None
        self._heard: deque[NDArray[np.float32]] = deque(maxlen=100)
        self._told = -1

    def use(self, choice: PrivacyChoice) -> None:
        """Other wishes from now on."""
        self._choice = choice
        if not choice.recordings:
            self.close()

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        name = event.type.value
        if event.type is EventType.ERROR:
            self._log.error(name, reason=event.reason)
        elif event.type in _TOLD:
            field = _TOLD[event.type]
            self._log.info(name, **({field: getattr(event, field)} if field else {}))
        else:
            self._log.debug(name, **{key: value for key, value in event.as_json().items() if key not in ("type", "t")})

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`."""
        if turn.index <= self._told or not (turn.tokens.generated or turn.interrupted):
            return  # its record comes again when its tokens are settled
        self._told = turn.index
        tokens, latency = turn.tokens, turn.latency.voice_to_voice
        self._log.info(
            "turn",
            turn=turn.index,
            voice_to_voice=None if latency is None else round(latency, 3),
            interrupted=turn.interrupted,
            forwarded=tokens.forwarded,
            referenced=tokens.referenced,
            context=tokens.context,
        )
        if self._choice.transcripts:
            self._write_down(turn)

    def heard(self, frame: NDArray[np.float32]) -> None:
        """20 ms of the microphone, as the conversation gets it (any thread); the answer to it comes as `sound`."""
        if self._choice.recordings:
            self._heard.append(frame)

    def sound(self, frame: NDArray[np.float32]) -> None:
        """See `FrontEnd.sound`."""
        if not self._choice.recordings or not self._heard:
            return
        try:
            if self._recorder is None or self._recorder.frames >= HOUR:
                self._next_recording()
            assert self._recorder is not None
            self._recorder.add(self._heard.popleft(), frame)
        except Exception as error:  # a full disk must not cost the conversation
            self._log.error("recording", reason=str(error))
            self.use(PrivacyChoice(transcripts=self._choice.transcripts))

    def close(self) -> None:
        """End the recording."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()

    def _next_recording(self) -> None:
        self.close()
        folder = self._folder / "recordings"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = sorted(folder.glob("*.wav"))
        for old in kept[: max(0, len(kept) - self._choice.recordings_kept + 1)]:
            old.unlink(missing_ok=True)
        self._recorder = Recorder(folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}.wav")
        self._log.info("recording", folder=folder)

    def _write_down(self, turn: Turn) -> None:
        record = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "user": turn.user_text}
        record |= {"assistant": turn.heard_text}
        if turn.interrupted:
            record["meant"] = turn.assistant_text
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._folder / "transcripts.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(file, "a", encoding="utf-8") as out:
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            self._log.error("transcript", reason=str(error))
