"""Did what must follow follow? Each expectation of a scenario that was not met, as a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.scenarios import sound
from assistant.scenarios.score import Run, Scores, answers
from assistant.scenarios.words import holds, holds_any

MOST = 6
"""Sentences about one run: behind a broken echo canceller there may be hundreds."""


def failures(run: Run, scores: Scores) -> list[str]:
    """Empty when all is well."""
    found = [*_what(run, scores), *_when(run, scores)]
    return found if len(found) <= MOST else [*found[:MOST], f"and {len(found) - MOST} more"]


def _what(run: Run, scores: Scores) -> Iterator[str]:
    wanted, timeline = run.scenario.expect, run.timeline
    turns = timeline.turns
    if run.missed:
        yield f"{run.missed} cues never had their moment"
    for event in timeline.events:
        if event.type.value == "error":
            yield f"error: {event.reason}"
    if wanted.turns is not None and len(turns) != wanted.turns:
        yield f"{len(turns)} turns instead of {wanted.turns}: {[turn.user_text for turn in turns[:5]]}"
    for place, text in enumerate(wanted.asked):
        understood = turns[place].user_text if place < len(turns) else ""
        if not holds(understood, text):
            yield f"turn {place} was '{understood}', not '{text}'"
    for place, text in enumerate(wanted.answered):
        said = turns[place].assistant_text if place < len(turns) else ""
        if not holds_any(said, text):
            yield f"turn {place} was answered '{said}', without '{text}'"
    if wanted.answered_last and not holds_any(turns[-1].assistant_text if turns else "", wanted.answered_last):
        yield f"the last answer was '{turns[-1].assistant_text if turns else ''}', without '{wanted.answered_last}'"
    given = answers(run)
    broken = [turn for turn in turns if turn.interrupted]
    if wanted.silent and sound.spans(run.said.reshape(-1)):
        yield "the assistant made a sound"
    if wanted.uninterrupted and broken:
        yield f"broken off: '{broken[0].assistant_text}' at '{broken[0].heard_text[-30:]}'"
    if wanted.interrupted is not None and len(broken) != wanted.interrupted:
        yield f"{len(broken)} answers were broken off instead of {wanted.interrupted}"
    if wanted.resumed:
        for answer in given:
            if not answer.trace.whole:
                left = (answer.trace.length - answer.trace.played) / 24_000
                yield f"'{answer.turn.assistant_text[:40]}': {left:.2f} s not played, jumps {answer.trace.jumps}"
    if not all(scores.cut_ins):
        yield "the assistant did not cut in"
    if scores.false_cut_ins:
        yield "the assistant cut in without a reason"
    if wanted.speaks_first and not _speaks_first(run):
        yield "the assistant did not speak first"


def _speaks_first(run: Run) -> bool:
    said = sound.spans(run.said.reshape(-1))
    return bool(said) and (not run.placed or said[0][0] < run.placed[0].onset)


def _when(run: Run, scores: Scores) -> Iterator[str]:
    wanted = run.scenario.expect
    if wanted.stop_within is not None:
        for barge in scores.barges:
            if barge.stop_ms is None or barge.stop_ms > 1000 * wanted.stop_within:
                yield f"silent {_ms(barge.stop_ms)} after the onset instead of {1000 * wanted.stop_within:.0f} ms"
    if wanted.response_within is not None:
        late = [*scores.latencies, *[barge.response_ms for barge in scores.barges]]
        if not late or not all(scores.answered):
            yield "a request was not answered"
        for value in late:
            if value is None or value > 1000 * wanted.response_within:
                yield f"answered after {_ms(value)} instead of {1000 * wanted.response_within:.0f} ms"
    if wanted.heard_off_at_most is not None:
        for barge in scores.barges:
            if barge.heard_off is not None and barge.heard_off > wanted.heard_off_at_most:
                yield f"the heard text is {barge.heard_off} words off"
    if wanted.forwarded_at_most is not None and scores.after_endpoint:
        most = max(scores.after_endpoint)
        if most > wanted.forwarded_at_most:
            yield f"{most} tokens were forwarded after the endpoint instead of {wanted.forwarded_at_most}"


def _ms(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f} ms"
