"""When does speech start and stop: hysteresis over the detector's frames, with the true edge times."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from assistant.audio.constants import FRAME, FRAME_MS, samples
from assistant.ears.evidence import SpeechEvidence
from assistant.ears.vad import SpeechDetector, VadFrame, VadSettings

HOP = FRAME // 2
LOOK_BACK_FRAMES = 16
"""How far before the detector's onset the true one is looked for: 320 ms (it can be 172 ms late)."""

LIKELY_LAPSE_FRAMES = 15
"""A likely onset that does not become speech within 300 ms was nothing."""

HANGOVER = samples(300)
"""After an end that only the level showed, the detector may still say speech for this long."""

WEAK = 0.1
"""With the quick detector's consent, this probability of the good one is enough for a suspicion."""


@dataclass(frozen=True)
class OnsetLikely:
    """Perhaps somebody starts to speak: reason enough to duck, not to stop."""

    at_sample: int
    noticed_at: int


@dataclass(frozen=True)
class OnsetLapsed:
    """The likely onset came to nothing: undo the duck."""

    at_sample: int
    noticed_at: int


@dataclass(frozen=True)
class SpeechStarted:
    """Speech began at `at_sample`, which was certain at `noticed_at`."""

    at_sample: int
    noticed_at: int


@dataclass(frozen=True)
class SpeechEnded:
    """The last sound of speech was before `at_sample`, which was certain at `noticed_at`."""

    at_sample: int
    noticed_at: int
    evidence: SpeechEvidence
    """Of this stretch alone."""


Edge = OnsetLikely | OnsetLapsed | SpeechStarted | SpeechEnded


class SpeechEdges:
    """Turns frames into edges. Of one stream, in order: (OnsetLikely (OnsetLapsed | SpeechStarted
    SpeechEnded))*, the edges' times never going back. SpeechStarted always follows an OnsetLikely."""

    def __init__(self, settings: VadSettings | None = None, detector: SpeechDetector | None = None) -> None:
        self.detector = detector or SpeechDetector(settings)
        self.settings = self.detector.settings
        self.reset()

    def reset(self, at_sample: int = 0) -> None:
        """Begin a new stream at this sample count; an open stretch of speech is forgotten."""
        self.detector.reset(at_sample)
        self.in_speech = False
        self.last_frame: VadFrame | None = None
        self._recent: deque[VadFrame] = deque(maxlen=LOOK_BACK_FRAMES)
        self._likely_at: int | None = None
        self._likely_frames = 0
        self._above_ms = 0
        self._quiet_ms = 0
        self._loudest_db = -120.0
        self._last_edge = at_sample
        self._last_voice = at_sample
        self._voice_start = at_sample
        self._hangover_until = at_sample
        self.evidence = SpeechEvidence()

    @property
    def silence_ms(self) -> int:
        """Silence so far since the last sound of speech; 0 in the middle of a word."""
        return self._quiet_ms

    @property
    def suspected(self) -> bool:
        """Whether somebody speaks, or perhaps begins to."""
        return self.in_speech or self._likely_at is not None

    @property
    def last_voice(self) -> int:
        """The sample after the last sound of speech so far."""
        return self._last_voice

    @property
    def voice_start(self) -> int:
        """Where the present (or last) stretch of speech began."""
        return self._voice_start

    def push(self, frame: np.ndarray) -> list[Edge]:
        """One frame of float32 [320]; returns the edges that became known with it."""
        now = self.detector.process(frame)
        self.last_frame = now
        self._recent.append(now)
        return self._speaking(now) if self.in_speech else self._idle(now)

    def finish(self) -> list[Edge]:
        """End of the stream: close what is open."""
        end = self.last_frame.end if self.last_frame else self._last_edge
        if self.in_speech:
            return [self._ended(end)]
        return self._lapse(end) if self._likely_at is not None else []

    def _idle(self, now: VadFrame) -> list[Edge]:
        edges: list[Edge] = []
        chosen = self.settings
        if self._likely_at is None and self._suspicious(now):
            self._likely_at = self._onset(now)
            self._likely_frames = 0
            edges.append(OnsetLikely(self._likely_at, now.end))
        above = now.probability >= chosen.onset and not self._hangs_over(now)
        self._above_ms = self._above_ms + FRAME_MS if above else 0
        if self._likely_at is None:
            return edges
        self._likely_frames += 1
        if self._above_ms >= chosen.min_speech_ms:
            edges.append(self._started(now))
        elif self._likely_frames > LIKELY_LAPSE_FRAMES and now.probability < chosen.likely:
            edges += self._lapse(now.end)
        return edges

    def _hangs_over(self, now: VadFrame) -> bool:
        quiet = max(now.levels_db) <= now.floor_db + self.settings.margin_db
        return quiet and now.end <= self._hangover_until

    def _suspicious(self, now: VadFrame) -> bool:
        if self._hangs_over(now):
            return False
        if now.probability >= self.settings.likely:
            return True
        loud = min(now.levels_db) > now.floor_db + self.settings.margin_db
        return loud and now.quick and now.probability >= WEAK

    def _started(self, now: VadFrame) -> SpeechStarted:
        at = self._onset(now)
        if self._likely_at is not None and self._likely_frames <= LIKELY_LAPSE_FRAMES:
            at = min(at, self._likely_at)
        at = max(at, self._last_edge)
        self.in_speech = True
        self._quiet_ms = 0
        self._above_ms = 0
        self._loudest_db = max(max(frame.levels_db) for frame in self._recent)
        self._last_edge = at
        self._voice_start = at
        self._last_voice = now.end
        self.evidence = SpeechEvidence()
        for frame in self._recent:
            if frame.end > at:
                self._weigh(frame)
        return SpeechStarted(at, now.end)

    def _lapse(self, end: int) -> list[Edge]:
        at = self._likely_at if self._likely_at is not None else end
        self._likely_at = None
        return [OnsetLapsed(at, end)]

    def _onset(self, now: VadFrame) -> int:
        """The sample at which the sound that led to `now` rose out of the background.

        Walks back hop by hop while the sound stays over the floor; one quiet hop is forgiven, the gap
        after a plosive. Without a clear level the first suspicious frame counts.
        """
        floor = now.floor_db + self.settings.margin_db
        at = now.end - HOP
        misses = 0
        for frame in reversed(self._recent):
            for half, level in ((1, frame.levels_db[1]), (0, frame.levels_db[0])):
                if level > floor or frame.probability >= self.settings.onset:
                    at = frame.end - FRAME + half * HOP
                    misses = 0
                else:
                    misses += 1
                if misses > 2:
                    return max(at, self._last_edge)
        return max(at, self._last_edge)

    def _speaking(self, now: VadFrame) -> list[Edge]:
        self._weigh(now)
        self._loudest_db = max(self._loudest_db - 0.02, max(now.levels_db))
        if self._sounds(now):
            self._quiet_ms = 0
            self._last_voice = self._voice_end(now)
            return []
        self._quiet_ms = (now.end - self._last_voice) * FRAME_MS // FRAME
        unheard = now.probability < self.settings.offset
        if self._quiet_ms >= (self.settings.min_silence_ms if unheard else self.settings.min_quiet_ms):
            return [self._ended(now.end)]
        return []

    def _clear(self, now: VadFrame) -> bool:
        return self._loudest_db - now.floor_db >= self.settings.clear_db

    def _sounds(self, now: VadFrame) -> bool:
        """Does this frame still carry speech? The detector hangs on for about 100 ms, so where the
        voice stands well out of the noise a fall back to the floor ends it at once."""
        if now.probability < self.settings.offset:
            return False
        return not self._clear(now) or max(now.levels_db) > now.floor_db + self.settings.margin_db

    def _voice_end(self, now: VadFrame) -> int:
        if self._clear(now) and now.levels_db[1] <= now.floor_db + self.settings.margin_db:
            return now.end - HOP
        return now.end

    def _weigh(self, frame: VadFrame) -> None:
        voiced = frame.probability >= self.settings.onset
        self.evidence += SpeechEvidence(
            voiced_ms=FRAME_MS if voiced else 0,
            active_ms=FRAME_MS,
            probability_sum=frame.probability * FRAME_MS,
            peak=frame.probability,
            over_floor_db=max(frame.levels_db) - frame.floor_db,
        )

    def _ended(self, end: int) -> SpeechEnded:
        if self.last_frame and self.last_frame.probability >= min(self.settings.offset, self.settings.likely):
            self._hangover_until = end + HANGOVER
        self.in_speech = False
        self._likely_at = None
        self._quiet_ms = 0
        self._above_ms = 0
        self._last_edge = max(self._last_edge, min(self._last_voice, end))
        return SpeechEnded(self._last_edge, end, self.evidence)
