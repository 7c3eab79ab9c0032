"""What the voice detector knows about one stretch of sound: the gate weighs it against the words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpeechEvidence:
    """Sums over a stretch of speech, so that two stretches add up to one."""

    voiced_ms: int = 0
    """Time in frames whose probability reached the onset threshold."""
    active_ms: int = 0
    """Time between the edges, weaker frames included."""
    probability_sum: float = 0.0
    """Of the active frames, one value per millisecond."""
    peak: float = 0.0
    """Highest probability of any frame."""
    over_floor_db: float = 0.0
    """Loudest hop over the noise floor."""

    @property
    def mean_probability(self) -> float:
        return self.probability_sum / self.active_ms if self.active_ms else 0.0

    def __add__(self, other: SpeechEvidence) -> SpeechEvidence:
        return SpeechEvidence(
            self.voiced_ms + other.voiced_ms,
            self.active_ms + other.active_ms,
            self.probability_sum + other.probability_sum,
            max(self.peak, other.peak),
            max(self.over_floor_db, other.over_floor_db),
        )
