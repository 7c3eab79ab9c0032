"""The assistant's mouth: plays one answer, knows to the sample what was played, ducks, holds, goes on, stops.

A frame is pulled every 20 ms by whoever owns the clock (a file, a sound card, a browser). Nothing here waits,
locks or allocates per sample. Positions are samples of the answer's own sound at `PLAYBACK_RATE`.

    queued sound   |=====clause 0=====|===clause 1===|==clause 2 (not yet synthesised)
                            ^ position: all before it was played, `hold()` keeps it, `resume()` goes on from it
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import PLAYBACK_FRAME, PLAYBACK_RATE

DUCKED_GAIN = 0.2
"""About -14 dB: still heard as going on, no longer in the way."""
ASIDE_GAIN = 0.3
"""A listening noise is about 10 dB under speech."""
FADE = PLAYBACK_RATE * 20 // 1000
"""Samples of a full-scale fade: one frame, so that a stop is silent within 30 ms."""

TRAIL = 512
"""Frames (10 s) for which it is known what was being played: more than any output is behind."""


@dataclass
class Output:
    """The way from the player to the air, as the front end that owns it reports it.

    A sound card or a browser plays a sample some time after it was pulled. What was pulled and not yet played has not
    been heard; on a stop it must not be heard any more either.
    """

    delay: int = 0
    """Samples (at `PLAYBACK_RATE`) that were pulled and are not in the air yet; updated at any time."""
    drop: Callable[[], None] | None = None
    """Forget what was pulled and not yet played; None: nothing is buffered, sound is in the air when it is pulled."""


@dataclass(frozen=True)
class Played:
    """What one pulled frame was. `sound` is reused by the next pull: copy what is kept."""

    sound: NDArray[np.float32]
    started: bool = False
    """The first sample of the answer is in this frame."""
    ended: bool = False
    """The last sample of the answer was in this frame; nothing more will come."""
    starved: bool = False
    """The answer is not at its end, yet its next clause was not there in time."""


class Player:
    """One answer at a time, pulled frame by frame. Use from one thread."""

    def __init__(self) -> None:
        self._queue: deque[NDArray[np.float32]] = deque()
        self._head = 0
        """Samples of the first queued piece that were played."""
        self._out = np.zeros(PLAYBACK_FRAME, dtype=np.float32)
        self._ramp = np.zeros(PLAYBACK_FRAME, dtype=np.float32)
        self._gain = 1.0
        self._target = 1.0
        self._held = False
        self._active = False
        self._complete = False
        self._started = False
        self._trail: deque[int] = deque([0], TRAIL)
        """`position` after each pulled frame, the newest last."""
        self._aside = np.zeros(0, np.float32)
        self.position = 0
        """Samples of the answer that were played."""
        self.queued = 0
        """Samples of the answer that are waiting."""

    @property
    def active(self) -> bool:
        """Whether an answer is being played or held."""
        return self._active

    @property
    def sounding(self) -> bool:
        """Whether sound is coming out now (at any level)."""
        return self._active and self._started and not self._held

    @property
    def ducked(self) -> bool:
        """Whether the answer is quieter than it should be, or held."""
        return self._held or self._target != 1.0

    def begin(self, *, held: bool = False) -> None:
        """Start a new, still empty answer at full level; what was there is dropped. `held`: silent until resumed."""
        self._clear()
        self._active = True
        self._held = held
        self._gain = self._target = 0.0 if held else 1.0

    def _clear(self) -> None:
        self._queue.clear()
        self._head = self.position = self.queued = 0
        self._active = self._complete = self._started = self._held = False
        self._trail.clear()
        self._trail.append(0)

    def add(self, sound: NDArray[np.float32]) -> None:
        """Queue more of the answer: float32 mono at `PLAYBACK_RATE`."""
        if sound.size:
            self._queue.append(sound)
            self.queued += sound.size

    def complete(self) -> None:
        """No more sound is coming for this answer."""
        self._complete = True

    def duck(self) -> None:
        """Play on quietly."""
        if not self._held:
            self._target = DUCKED_GAIN

    def hold(self) -> None:
        """Fade out now and keep the place. The faded samples are played again on `resume`."""
        self._held = True

    def resume(self) -> None:
        """Full level, from the sample at which `hold` came."""
        self._held = False
        self._target = 1.0

    def in_the_air(self, delay: int) -> int:
        """Samples of the answer that have been heard where sound comes out `delay` samples after it was pulled.

        Counted along the frames that were pulled, so silence while held does not count as answer: of an answer held
        for 60 ms, with a delay of 60 ms, all that was pulled before has been heard.
        """
        frames, rest = divmod(max(0, delay), PLAYBACK_FRAME)
        if frames + 1 >= len(self._trail):
            return self._trail[0]
        before, after = self._trail[-2 - frames], self._trail[-1 - frames]
        return min(after, before + PLAYBACK_FRAME - rest)

    def stop(self, output: Output | None = None) -> int:
        """Drop the rest. Returns the samples of the answer that were heard.

        The frame pulled next fades out, unless `output` drops what it holds: that is where the fade belongs then.
        """
        played = self.position if output is None else self.in_the_air(output.delay)
        buffered = output is not None and output.drop is not None
        if output is not None and output.drop is not None and self._started:
            output.drop()
        fades = self._started and not self._held and not buffered
        tail = self._take(min(FADE, self.queued)) if fades else None
        self._clear()
        if tail is not None and tail.size:
            # The fade belongs to nobody: it is sound already in flight, not heard text.
            self._queue.append(tail * np.linspace(self._gain, 0.0, tail.size, dtype=np.float32))
            self.queued = tail.size
            self._gain = self._target = 1.0
        return played

    def pull(self) -> Played:
        """The next 20 ms (`PLAYBACK_FRAME` samples)."""
        played = self._pull()
        self._trail.append(self.position)
        if self._aside.size:
            self._mix_aside(played.sound)
        return played

    def aside(self, sound: NDArray[np.float32]) -> None:
        """Play `sound` softly beside whatever else is played, now; it belongs to no answer."""
        self._aside = sound

    def _mix_aside(self, out: NDArray[np.float32]) -> None:
        piece = self._aside[:PLAYBACK_FRAME]
        out[: piece.size] += ASIDE_GAIN * piece
        self._aside = self._aside[piece.size :]

    def _pull(self) -> Played:
        out = self._out
        if self._held and self._gain == 0.0:
            out.fill(0.0)
            return Played(out)
        wanted = min(PLAYBACK_FRAME, self.queued)
        if wanted == 0:
            out.fill(0.0)
            return self._nothing_queued(out)
        started = self._active and not self._started
        piece = self._peek(wanted) if self._held else self._take(wanted)
        out[: piece.size] = piece
        out[piece.size :] = 0.0
        self._apply_gain(out)
        if self._active:
            self._started = True
            if not self._held:
                self.position += piece.size
        ended = self._active and self._complete and self.queued == 0
        if ended:
            self._active = False
        return Played(out, started=started, ended=ended)

    def _nothing_queued(self, out: NDArray[np.float32]) -> Played:
        if self._active and self._complete:
            self._active = False
            return Played(out, ended=True)
        return Played(out, starved=self._active and self._started)

    def _apply_gain(self, out: NDArray[np.float32]) -> None:
        target = 0.0 if self._held else self._target
        if self._gain == target:
            if target != 1.0:
                out *= np.float32(target)
            return
        self._ramp[:] = np.linspace(self._gain, target, PLAYBACK_FRAME, dtype=np.float32)
        out *= self._ramp
        self._gain = target

    def _take(self, count: int) -> NDArray[np.float32]:
        piece = self._peek(count)
        left = count
        while left:
            rest = self._queue[0].size - self._head
            if rest > left:
                self._head += left
                break
            left -= rest
            self._queue.popleft()
            self._head = 0
        self.queued -= count
        return piece

    def _peek(self, count: int) -> NDArray[np.float32]:
        first = self._queue[0][self._head : self._head + count] if count else np.zeros(0, np.float32)
        if first.size == count:
            return first
        pieces, left = [first], count - first.size
        for sound in list(self._queue)[1:]:
            pieces.append(sound[:left])
            left -= pieces[-1].size
            if not left:
                break
        return np.concatenate(pieces)
