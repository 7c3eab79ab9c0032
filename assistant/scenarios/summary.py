"""All runs together: rates and percentiles, in the form that `crosstalk bench voice --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from assistant.scenarios.score import Barge, Scores


def summary(runs: Sequence[Scores], rooms: Sequence[bool]) -> dict[str, Any]:
    """Of `runs`; `rooms` says which of them were on open speakers. A rate without a case is None."""
    latencies = [value for run in runs for value in run.latencies]
    barges = [barge for run in runs for barge in run.barges]
    in_rooms = [run for run, room in zip(runs, rooms, strict=True) if room]
    return {
        "voice_to_voice_ms": {"p50": _at(latencies, 50), "p90": _at(latencies, 90), "n": len(latencies)},
        "pause_tor": _rate(taken for run in runs for taken in run.pauses),
        "backchannel_tor": _rate(stopped for run in runs for stopped in run.backchannels),
        "turn_tor": _rate(answered for run in runs for answered in run.answered),
        "barge_in": _barge_in(barges),
        "false_alarm_resume": _rate(on for run in runs for on in run.went_on),
        "open_speaker": {
            "self_interruptions": sum(run.self_interruptions for run in in_rooms),
            "minutes": round(sum(run.minutes for run in in_rooms), 2),
            "barge_in_rate": _rate(_stopped(barge) for run in in_rooms for barge in run.barges),
        },
        "interjection": {
            "hits": sum(sum(run.cut_ins) for run in runs),
            "false": sum(run.false_cut_ins for run in runs),
            "wanted": sum(len(run.cut_ins) for run in runs),
        },
        "words_lost": sum(run.words_lost for run in runs),
        "tokens_forwarded_per_turn": _mean(count for run in runs for count in run.forwarded),
        "tokens_after_endpoint_per_turn": _mean(count for run in runs for count in run.after_endpoint),
        "cases": {
            "pauses": sum(len(run.pauses) for run in runs),
            "backchannels": sum(len(run.backchannels) for run in runs),
            "false_alarms": sum(len(run.went_on) for run in runs),
            "turns": sum(len(run.answered) for run in runs),
            "words": sum(run.words_said for run in runs),
        },
    }


def _barge_in(barges: Sequence[Barge]) -> dict[str, Any]:
    off = [barge.heard_off for barge in barges if barge.heard_off is not None]
    return {
        "duck_ms_p90": _at([barge.duck_ms for barge in barges], 90),
        "stop_ms_p90": _at([barge.stop_ms for barge in barges], 90),
        "response_ms_p50": _at([barge.response_ms for barge in barges], 50),
        "heard_within_1_word": _rate(words <= 1 for words in off),
        "n": len(barges),
        "stop_ms_p50": _at([barge.stop_ms for barge in barges], 50),
        "stopped": _rate(_stopped(barge) for barge in barges),
    }


def _stopped(barge: Barge) -> bool:
    return barge.stop_ms is not None and barge.stop_ms <= 1000


def _at(values: Iterable[float | None], percent: float) -> int | None:
    known = [value for value in values if value is not None]
    return round(float(np.percentile(known, percent))) if known else None


def _rate(cases: Iterable[bool]) -> float | None:
    known = list(cases)
    return round(sum(known) / len(known), 4) if known else None


def _mean(values: Iterable[int]) -> float | None:
    known = list(values)
    return round(sum(known) / len(known), 2) if known else None
