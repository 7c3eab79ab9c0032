"""Something begins to sound that may be a voice: reason enough to speak softer, not to believe anything.

The voice detectors need 45 ms in the middle and up to 170 ms (1 onset in 10: a soft beginning) before they suspect
speech. The level alone needs 20 ms in the middle and up to 40 (344 onsets in a quiet room), but it rises for a door and
a cough too. So it is asked for the cheapest of all reactions only, and takes it back within 100 ms unless a detector
agrees.
"""

from __future__ import annotations

from dataclasses import dataclass

from assistant.ears.vad import NoiseFloor

RISE_DB = 15.0
"""Sound stands so far over the background."""
FALLEN_DB = 6.0
"""Under this over the background, the sound is gone and another may begin."""
LAPSE_FRAMES = 5
"""So long a rise is believed while no voice detector agrees (100 ms)."""
GONE_FRAMES = 3
DOUBT_FRAMES, LONGEST_DOUBT_FRAMES = 50, 800
"""After a rise that was nothing the next is not believed for a second, then for two, up to 16: a hard key may pass for
a beginning, a typist may not make the assistant stammer."""


@dataclass(frozen=True)
class SoundRose:
    """Sound begins in the frame before `noticed_at`."""

    noticed_at: int


@dataclass(frozen=True)
class SoundFell:
    """The sound that rose was no voice."""

    noticed_at: int


class SoundRise:
    """Levels of one microphone in; in order (SoundRose SoundFell?)*. No SoundFell comes once a voice is suspected:
    what becomes of it is told by the edges of speech."""

    def __init__(self) -> None:
        self._floor = NoiseFloor()
        self._risen_for: int | None = None
        """Frames since the rise that is believed."""
        self._armed = False
        self._low = 0
        self._doubt = 0
        """Frames for which nothing is believed."""
        self._next_doubt = DOUBT_FRAMES

    def push(self, level_db: float, end: int, *, probability: float, suspected: bool) -> SoundRose | SoundFell | None:
        """`level_db` of a frame without the assistant's own sound, see `Canceller.foreign_db`; the frame's last sample
        is `end` of the stream. `probability` that it is speech; `suspected`: a voice detector thinks that somebody
        speaks or begins to."""
        over = level_db - self._floor.update((level_db, level_db), probability)
        self._low = self._low + 1 if over <= FALLEN_DB else 0
        self._doubt -= self._doubt > 0
        if suspected:
            if self._risen_for is not None:
                self._next_doubt = DOUBT_FRAMES
            self._risen_for, self._armed = None, False
            return None
        if self._risen_for is not None:
            self._risen_for += 1
            if self._risen_for < LAPSE_FRAMES:
                return None
            self._risen_for = None
            self._doubt, self._next_doubt = self._next_doubt, min(2 * self._next_doubt, LONGEST_DOUBT_FRAMES)
            return SoundFell(end)
        self._armed |= self._low >= GONE_FRAMES
        if not self._armed or self._doubt or over <= RISE_DB:
            return None
        self._risen_for, self._armed = 0, False
        return SoundRose(end)
