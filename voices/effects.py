"""How a voice is coloured: effects by name, put through `pedalboard` (optional extra `effects`).

    effects = Effects(["metallic"], sample_rate)
    for piece in voice.stream(text): play(effects.process(piece.pcm))
    play(effects.tail())

As many samples come out as went in, so word timing stays true. What rings on from one piece into the next does
so; `tail` gives what still rings when the reply is over, `reset` forgets it (after an interruption).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voices.errors import VoiceError

if TYPE_CHECKING:
    from pedalboard import Pedalboard

_LONGEST_TAIL = 1.5  # seconds
_BLOCK = 8192
_QUIET = 0.002  # of full scale: below it nothing is heard to ring


@dataclass(frozen=True)
class Effect:
    """A named chain; `chain` gets the pedalboard module and gives its plugins."""

    description: str
    chain: Callable[[Any], list[Any]]


# All of these answer sample for sample; plugins that look ahead (pitch shifting) would move the words.
EFFECTS: dict[str, Effect] = {
    "metallic": Effect(
        "a lab computer behind a steel grille",
        lambda pb: [
            pb.HighpassFilter(180),
            pb.Delay(0.0067, feedback=0.55, mix=0.45),
            pb.Delay(0.0113, feedback=0.35, mix=0.3),
            pb.Chorus(rate_hz=0.4, depth=0.12, centre_delay_ms=4.0, feedback=0.3, mix=0.35),
            pb.PeakFilter(2600, gain_db=5.0, q=0.8),
            pb.Gain(7.0),
        ],
    ),
    "robot": Effect(
        "flat and buzzing",
        lambda pb: [
            pb.Phaser(rate_hz=0.2, depth=0.9, centre_frequency_hz=900, feedback=0.6, mix=0.5),
            pb.Delay(0.0083, feedback=0.7, mix=0.5),
            pb.Bitcrush(9),
            pb.LowpassFilter(6500),
            pb.Gain(3.0),
        ],
    ),
    "radio": Effect(
        "a dispatcher over two-way radio",
        lambda pb: [
            pb.HighpassFilter(420),
            pb.HighpassFilter(420),
            pb.LowpassFilter(2900),
            pb.LowpassFilter(2900),
            pb.Compressor(threshold_db=-26, ratio=6),
            pb.Distortion(14),
            pb.LowpassFilter(3200),
            pb.Gain(0.0),
        ],
    ),
    "telephone": Effect(
        "over the telephone",
        lambda pb: [
            pb.HighpassFilter(320),
            pb.HighpassFilter(320),
            pb.LowpassFilter(3300),
            pb.LowpassFilter(3300),
            pb.Gain(3),
        ],
    ),
    "hall": Effect(
        "in a large room",
        lambda pb: [pb.Reverb(room_size=0.6, damping=0.5, wet_level=0.22, dry_level=0.5, width=0.0)],
    ),
    "warm": Effect(
        "close and full",
        lambda pb: [
            pb.LowShelfFilter(220, gain_db=4.0),
            pb.HighShelfFilter(5000, gain_db=-3.0),
            pb.Compressor(threshold_db=-22, ratio=2.5),
            pb.Gain(6.0),
        ],
    ),
    "bright": Effect("clear and light", lambda pb: [pb.HighpassFilter(120), pb.HighShelfFilter(3500, gain_db=5.0)]),
}


class Effects:
    """A chain of effects for one stream of sound; keeps what rings between calls, so one object per voice at work."""

    def __init__(self, names: Sequence[str], sample_rate: int) -> None:
        """`names` of `EFFECTS`, in order; none leaves the sound as it is and needs no library.

        Raises VoiceError for a name that does not exist and when the library is not installed.
        """
        for name in names:
            if name not in EFFECTS:
                near = get_close_matches(name, EFFECTS, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; choose among {', '.join(EFFECTS)}"
                raise VoiceError(f"there is no voice effect {name!r}{hint}")
        self.names = tuple(names)
        self._rate = sample_rate
        self._board: Pedalboard | None = _board(names) if names else None
        self._fresh = True

    def process(self, pcm: NDArray[np.float32]) -> NDArray[np.float32]:
        """The coloured sound, as long as the one given, in [-1, 1]."""
        if self._board is None or not len(pcm):
            return pcm
        if self._fresh:
            # The library forgets what rings when a longer block comes than any before: begin with the longest.
            self._board(np.zeros((1, _BLOCK), np.float32), self._rate, _BLOCK, reset=True)
            self._fresh = False
        sound = self._board(pcm.reshape(1, -1), self._rate, _BLOCK, reset=False).reshape(-1)
        return np.clip(_fitted(sound, len(pcm)), -1.0, 1.0).astype(np.float32, copy=False)

    def tail(self) -> NDArray[np.float32]:
        """What still rings after the last sound (possibly nothing); the next sound starts anew."""
        if self._board is None or self._fresh:
            return np.zeros(0, np.float32)
        rest = self.process(np.zeros(int(_LONGEST_TAIL * self._rate), np.float32))
        self.reset()
        loud = np.flatnonzero(np.abs(rest) > _QUIET)
        return rest[: int(loud[-1]) + 1] if len(loud) else rest[:0]

    def reset(self) -> None:
        """Forget what rings; the next sound starts anew."""
        self._fresh = True


def _board(names: Sequence[str]) -> Pedalboard:
    try:
        import pedalboard
    except ImportError as error:
        raise VoiceError(
            "voice effects need the `effects` extra; install it with `pip install 'crosstalk-assistant[effects]'`"
        ) from error
    return pedalboard.Pedalboard([plugin for name in names for plugin in EFFECTS[name].chain(pedalboard)])


def _fitted(sound: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """A plugin that holds samples back gives fewer: the gap is put in front, where it is silent anyway."""
    if len(sound) == length:
        return sound
    if len(sound) > length:
        return sound[-length:]
    return np.concatenate([np.zeros(length - len(sound), np.float32), sound])
