"""One run of a scenario against its labels, scored as Full-Duplex-Bench does.

Times come from the sound (`sound.py`, `trace.py`) and from the labels of the microphone; the assistant's own record is
only asked for what it remembers (texts, tokens).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.audio.constants import FRAME_MS, PLAYBACK_FRAME
from assistant.overlap import is_halt
from assistant.scenarios import sound
from assistant.scenarios.format import Role, Scenario
from assistant.scenarios.microphone import Placed
from assistant.scenarios.trace import Original, Takes, Trace, originals, trace
from assistant.scenarios.words import lost_words
from assistant.timeline.events import EventType, Turn
from assistant.timeline.record import Timeline

SHORTEST_PAUSE = 0.25
"""Seconds of silence inside a turn from which it counts as a pause."""
ANSWER_WITHIN = 6.0
"""Seconds in which a request must be answered, or it counts as ignored."""
SOUND = 0.05
"""Seconds of sound that count as saying something."""
REACTION = 4.0
"""Seconds after an overlap in which it may hold the answer."""


@dataclass(frozen=True)
class Run:
    """What one run left behind. `said`: float32 [frames, 480] at 24 kHz; `takes`: what the voice made."""

    scenario: Scenario
    timeline: Timeline
    placed: tuple[Placed, ...]
    missed: int
    said: NDArray[np.float32]
    takes: Takes


@dataclass(frozen=True)
class Answer:
    """One answer: the assistant's record of it, its original sound, what became of it."""

    turn: Turn
    original: Original
    trace: Trace


@dataclass(frozen=True)
class Barge:
    """A barge-in, milliseconds from its onset (response: from its end); None: it never came."""

    duck_ms: float | None
    stop_ms: float | None
    response_ms: float | None
    heard_off: int | None
    """Words between what was remembered as heard and what was in the air."""


@dataclass
class Scores:
    """Everything measured in one run; lists hold one entry a case."""

    latencies: list[float] = field(default_factory=list)
    """Milliseconds from the end of a finished request to the answer's first audible sample."""
    answered: list[bool] = field(default_factory=list)
    pauses: list[bool] = field(default_factory=list)
    """True: the assistant spoke in the pause."""
    backchannels: list[bool] = field(default_factory=list)
    """True: it stopped for one, or answered it."""
    went_on: list[bool] = field(default_factory=list)
    """False alarms (backchannels and noises over the assistant): True when the answer went on from the very sample."""
    barges: list[Barge] = field(default_factory=list)
    self_interruptions: int = 0
    minutes: float = 0.0
    words_lost: int = 0
    words_said: int = 0
    forwarded: list[int] = field(default_factory=list)
    after_endpoint: list[int] = field(default_factory=list)
    cut_ins: list[bool] = field(default_factory=list)
    """Cues that ask for it: whether the assistant cut in on them."""
    false_cut_ins: int = 0
    notes: list[str] = field(default_factory=list)


def answers(run: Run) -> list[Answer]:
    """The answers that made a sound, each followed through the output."""
    clauses: dict[int, list[str]] = {}
    begun: dict[int, float] = {}
    for event in run.timeline.events:
        if event.turn is None:
            continue
        if event.type is EventType.USER_TURN:  # a number is used again after an answer nobody heard
            clauses[event.turn], begun[event.turn] = [], event.t
        if event.type is EventType.ASSISTANT_TEXT:
            clauses.setdefault(event.turn, []).append(event.text or "")
            begun.setdefault(event.turn, event.t)
    order = sorted((turn for turn in run.timeline.turns if turn.index in begun), key=lambda turn: begun[turn.index])
    loud = np.abs(run.said).max(axis=1, initial=0.0) > 0
    found = []
    for place, turn in enumerate(order):
        made = [one for one in originals(tuple(clauses.get(turn.index, [])), run.takes) if one.sound.size]
        if not made or turn.speech_start is None:
            continue
        first = max(0, round(begun[turn.index] * 1000 / FRAME_MS) - 2)
        following = order[place + 1] if place + 1 < len(order) else None
        last = len(run.said) if following is None else round(begun[following.index] * 1000 / FRAME_MS) - 2
        sounding = np.flatnonzero(loud[first:last])
        if sounding.size:
            start = first + int(sounding[0])
            tried = [Answer(turn, one, trace(run.said, start, last, one.sound)) for one in made]
            found.append(max(tried, key=lambda answer: answer.trace.likeness))
    return found


def score(run: Run) -> Scores:
    """All measures of `run`."""
    scores = Scores()
    said = sound.spans(run.said.reshape(-1))
    given = answers(run)
    placed = run.placed
    if run.scenario.interjects:
        _cut_ins(scores, placed, said)
        placed = ()
    for index, cue in enumerate(placed):
        following = placed[index + 1] if index + 1 < len(placed) else None
        match cue.role:
            case Role.REQUEST | Role.UNFINISHED | Role.CONTINUATION | Role.AFTERTHOUGHT:
                before = placed[index - 1] if cue.role is Role.CONTINUATION and index else None
                _pauses(scores, cue, before, said)
                if cue.role is not Role.UNFINISHED and not _goes_on(following):
                    _turn(scores, cue, following, said)
            case Role.BARGE_IN:
                scores.barges.append(_barge(cue, following, run, said, given))
            case Role.BACKCHANNEL | Role.NOISE:
                _overlap(scores, cue, placed[index + 1 :], given)
    if not run.scenario.interjects:
        _words(scores, run)
    _tokens(scores, run)
    if run.scenario.room is not None:
        scores.minutes = len(run.said) * FRAME_MS / 60_000
        scores.self_interruptions = _self_interruptions(run, given)
    return scores


def _cut_ins(scores: Scores, placed: tuple[Placed, ...], said: list[tuple[float, float]]) -> None:
    """Sound that begins while the user speaks."""
    for cue in placed:
        cut = any(cue.onset < start < cue.end for start, _ in said)
        if cue.cue.cut_in:
            scores.cut_ins.append(cut)
        else:
            scores.false_cut_ins += cut


def _goes_on(following: Placed | None) -> bool:
    return following is not None and following.role in (Role.CONTINUATION, Role.AFTERTHOUGHT)


def _pauses(scores: Scores, cue: Placed, before: Placed | None, said: list[tuple[float, float]]) -> None:
    """The pauses within `cue`, and the one that it ends."""
    stretches = ([(0, round(before.end * 16_000))] if before is not None else []) + list(cue.spans)
    for (_, end), (start, _) in zip(stretches, stretches[1:], strict=False):
        pause = (start - end) / 16_000
        if pause >= SHORTEST_PAUSE:
            # An answer that was begun in the pause may still be talking when the user goes on.
            scores.pauses.append(_sound_between(said, end / 16_000, start / 16_000 + 0.3))


def _sound_between(said: list[tuple[float, float]], start: float, end: float) -> bool:
    return sum(max(0.0, min(b, end) - max(a, start)) for a, b in said) >= SOUND


def _turn(scores: Scores, cue: Placed, following: Placed | None, said: list[tuple[float, float]]) -> None:
    latest = cue.end + ANSWER_WITHIN
    if following is not None and following.onset > cue.end:
        latest = min(latest, max(following.onset, cue.end + 0.5))
    start = sound.first_sound(said, cue.end)
    hit = start is not None and bool(start <= latest)
    scores.answered.append(hit)
    if start is not None and hit:
        scores.latencies.append(1000 * (start - cue.end))


def _barge(
    cue: Placed, following: Placed | None, run: Run, said: list[tuple[float, float]], given: list[Answer]
) -> Barge:
    stop = sound.silent_from(run.said.reshape(-1), cue.onset)
    cut = _over(cue, given)
    duck = cut.trace.quieter_from(cue.onset) if cut is not None else None
    response = sound.first_sound(said, max(cue.end, stop or 0.0))
    limit = following.onset if following is not None else cue.end + ANSWER_WITHIN
    answered = response is not None and response <= max(limit, cue.end + 0.5)
    return Barge(
        duck_ms=1000 * (duck - cue.onset) if duck is not None else None,
        stop_ms=1000 * (stop - cue.onset) if stop is not None else None,
        response_ms=1000 * (response - cue.end) if answered and response is not None else None,
        heard_off=_heard_off(cut) if cut is not None else None,
    )


def _over(cue: Placed, given: list[Answer]) -> Answer | None:
    """The answer over which `cue` was said."""
    for answer in given:
        pieces = answer.trace.pieces
        if pieces and pieces[0].time - 0.05 <= cue.onset <= _end_of_sound(answer) + PLAYBACK_FRAME / 24_000:
            return answer
    return None


def _end_of_sound(answer: Answer) -> float:
    return max((piece.time for piece in answer.trace.pieces if piece.taken), default=0.0)


def _heard_off(answer: Answer) -> int:
    """Words by which the remembered part differs from what was in the air."""
    remembered = len(answer.turn.heard_text.split())
    if not answer.turn.assistant_text.startswith(answer.turn.heard_text):  # which may end within a "word"
        return remembered + 1
    return abs(remembered - answer.original.words_in(answer.trace.played))


def _overlap(scores: Scores, cue: Placed, later: tuple[Placed, ...], given: list[Answer]) -> None:
    """A backchannel or a noise."""
    answer = _over(cue, given)
    if answer is None:
        if cue.role is Role.BACKCHANNEL:
            scores.notes.append(f"'{cue.text}' was not said over the assistant")
        return
    end = _end_of_sound(answer)
    # An answer that was broken off by somebody else, later, did go on after this.
    excused = any(cue.end < other.onset < end + 0.5 for other in later)
    stopped = not answer.trace.whole and not excused and end - cue.end < REACTION
    scores.went_on.append(not stopped and not answer.trace.jumps)
    if cue.role is Role.BACKCHANNEL:
        scores.backchannels.append(stopped)


def _self_interruptions(run: Run, given: list[Answer]) -> int:
    """Holds and cuts of answers, and turns, that no cue explains."""

    def explained(moment: float) -> bool:
        return any(cue.onset - 0.1 <= moment <= cue.end + REACTION for cue in run.placed)

    holds = [start for answer in given for start, _ in answer.trace.silences()]
    ends = {round(_end_of_sound(answer), 2) for answer in given if answer.trace.whole}
    count = sum(not explained(start) for start in holds if not any(start >= end for end in ends))
    count += sum(not explained(turn.user_start + 0.1) for turn in run.timeline.turns if turn.user_text)
    return count


def _words(scores: Scores, run: Run) -> None:
    """Words lost at the start and the end of each turn."""
    groups: list[list[Placed]] = []
    for cue in run.placed:
        if cue.role in (Role.BACKCHANNEL, Role.NOISE):
            continue
        if groups and cue.role in (Role.CONTINUATION, Role.AFTERTHOUGHT):
            groups[-1].append(cue)
        else:
            groups.append([cue])
    for group in groups:
        text = " ".join(cue.text for cue in group)
        start, end = group[0].onset - 0.3, group[-1].end + 0.3
        understood = " ".join(
            turn.user_text for turn in run.timeline.turns if turn.user_start < end and turn.user_end > start
        )
        if not understood and is_halt(text):  # obeyed by silence: no turn comes of it
            understood = _last_partial(run, start, end + REACTION)
        lost = sum(lost_words(text, understood))
        if lost:
            scores.notes.append(f"{lost} words lost of '{text}': '{understood}'")
        scores.words_lost += lost
        scores.words_said += len(text.split())


def _last_partial(run: Run, start: float, end: float) -> str:
    partials = [event for event in run.timeline.events if event.type is EventType.PARTIAL and start < event.t < end]
    return (partials[-1].text or "") if partials else ""


def _tokens(scores: Scores, run: Run) -> None:
    for turn in run.timeline.turns:
        if turn.tokens.context:
            scores.forwarded.append(turn.tokens.forwarded)
            scores.after_endpoint.append(turn.tokens.after_endpoint)


def record(scores: Scores) -> dict[str, Any]:
    """Plain data for one row."""
    return {
        "voice_to_voice_ms": [round(value) for value in scores.latencies],
        "answered": scores.answered,
        "pause_taken": scores.pauses,
        "backchannel_stopped": scores.backchannels,
        "went_on": scores.went_on,
        "barge_in": [
            {
                key: round(value) if isinstance(value, float) else value
                for key, value in vars(barge).items()
            }
            for barge in scores.barges
        ],
        "cut_in": scores.cut_ins,
        "false_cut_ins": scores.false_cut_ins,
        "self_interruptions": scores.self_interruptions,
        "words_lost": scores.words_lost,
        "tokens_forwarded": scores.forwarded,
        "tokens_after_endpoint": scores.after_endpoint,
        "notes": scores.notes,
    }
