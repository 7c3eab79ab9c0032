"""The mechanism of cutting in, with a scorer that knows the spots: at each of them once, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from assistant.bench.voice_bench import SCENARIOS
from assistant.build import Parts
from assistant.interjection import Reason
from assistant.overlap import plain_words
from assistant.replay import ClockKind
from assistant.scenarios.format import Cue, Scenario
from assistant.scenarios.moments import parse_moment
from assistant.scenarios.run import run_scenario, speakers_of
from assistant.scenarios.score import Run, score
from assistant.timeline.events import EventType

PERSONA = """
system: You are a friendly voice assistant.
answer_sentences: 1
interjections:
  eagerness: eager
  cooldown: 0
  per_ten_minutes: 60
  reasons: [{name: marked, judged: true, say: "Wait a moment, please.", only_say: true}]
"""

SAID = (
    (
        "I am sure that the capital of Australia is Sydney because we all went there last year with my brother.",
        "sydney",
    ),
    ("Last year we went to the seaside with my brother and his wife and we saw the harbour and the old town.", None),
    (
        "In the evening I put the candle under the curtain and then I went to bed and read a book for an hour.",
        "curtain",
    ),
    ("My sister has a small garden with apples and roses and she goes there every day when the sun is out.", None),
    (
        "The old king lived in a castle on the mountain and the people of the village brought him bread and wine.",
        "castle",
    ),
)


class Script:
    """Knows the marked words, and keeps what it was asked."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = marks
        self.asked: list[str] = []

    def __call__(self, text: str, reasons: tuple[Reason, ...]) -> dict[str, float]:
        self.asked.append(text)
        marked = any(mark in plain_words(text) for mark in self._marks)
        return {reason.name: 9.0 if marked else -9.0 for reason in reasons}


def talk(parts: Parts, folder: Path, marks: tuple[str, ...]) -> tuple[Run, Script]:
    (folder / "marked.yaml").write_text(PERSONA)
    cues = tuple(
        Cue(say=text, voice="joe:1.2", at=parse_moment("1.5 after all is quiet"), cut_in=mark in marks)
        for text, mark in SAID
    )
    scene = Scenario(name="marked", persona=str(folder / "marked.yaml"), user=cues, interjects=True)
    script = Script(marks)
    return run_scenario(parts, scene, speakers_of(parts, SCENARIOS), ClockKind.VIRTUAL, scorer=script), script


def test_at_each_marked_spot_and_nowhere_else(parts: Parts, tmp_path: Path) -> None:
    marks = tuple(mark for _, mark in SAID if mark)
    run, script = talk(parts, tmp_path, marks)
    scores = score(run)
    cuts = [event for event in run.timeline.events if event.type is EventType.INTERJECTION]
    assert scores.cut_ins == [True] * len(marks) and scores.false_cut_ins == 0 and len(cuts) == len(marks)
    for cut, (cue, mark) in zip(cuts, [(c, m) for c, (_, m) in zip(run.placed, SAID, strict=True) if m], strict=True):
        words = plain_words(cue.text)
        share = words.index(mark) / len(words)  # the spot: not before the word, nor long after it
        spot = cue.onset + share * (cue.end - cue.onset)
        assert spot - 0.5 < cut.t < spot + 2.5, (mark, spot, cut.t)
    assert len(script.asked) >= len(SAID)


def test_a_scorer_that_never_wants_to_is_never_disobeyed(parts: Parts, tmp_path: Path) -> None:
    run, script = talk(parts, tmp_path, ())
    assert score(run).false_cut_ins == 0 and len(script.asked) >= len(SAID)
    assert not [event for event in run.timeline.events if event.type is EventType.INTERJECTION]
