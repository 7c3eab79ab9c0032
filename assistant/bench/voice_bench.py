"""`crosstalk bench voice`: all scenarios through the real assistant, at real pace, scored from the sound."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.bench.others import Others
from assistant.build import Parts, load
from assistant.errors import CrosstalkError, ExitCode
from assistant.personas import load_persona
from assistant.replay import ClockKind
from assistant.scenarios.expect import failures
from assistant.scenarios.format import Scenario, load_folder
from assistant.scenarios.recordings import MissingVoice
from assistant.scenarios.run import files_in, run_scenario, speakers_of
from assistant.scenarios.score import Scores, record, score
from assistant.scenarios.speakers import Speakers
from assistant.scenarios.summary import summary
from assistant.settings import default_paths, parse_settings

SCENARIOS = Path(__file__).resolve().parents[2] / "tests" / "audio" / "scenarios"


class UnknownScenario(CrosstalkError):
    """A name that no scenario has."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class VoiceBench:
    """What is to be measured."""

    folder: Path = SCENARIOS
    only: tuple[str, ...] = ()
    """Names, or beginnings of names; empty: all but the long ones."""
    repeat: int = 1
    clock: ClockKind = ClockKind.WALL
    out: Path = Path("bench-voice")
    """Folder for timelines and recordings."""
    overrides: tuple[str, ...] = ()


def chosen(bench: VoiceBench) -> list[Scenario]:
    """The scenarios that `bench` asks for."""
    if not bench.folder.is_dir():
        raise UnknownScenario(f"there is no folder {bench.folder}; give one with --folder, or run in a checkout.")
    known = load_folder(bench.folder)
    if not bench.only:
        return [scenario for scenario in known if not scenario.long]
    found = [scenario for scenario in known if scenario.name.startswith(bench.only)]
    if not found:
        names = ", ".join(scenario.name for scenario in known)
        raise UnknownScenario(f"no scenario is called {' or '.join(bench.only)}; there are {names}.")
    return found


def run(bench: VoiceBench) -> dict[str, Any]:
    """Measure; the result is the JSON document."""
    scenarios = chosen(bench)
    settings = parse_settings(bench.overrides)
    bench.out.mkdir(parents=True, exist_ok=True)
    parts = load(default_paths(load_persona("default"), settings), settings)
    try:
        return measure(parts, scenarios, bench)
    finally:
        parts.close()


def measure(parts: Parts, scenarios: Sequence[Scenario], bench: VoiceBench) -> dict[str, Any]:
    """`scenarios` on loaded models, each `bench.repeat` times."""
    speakers = speakers_of(parts, bench.folder)
    scores: list[Scores] = []
    rooms: list[bool] = []
    rows = []
    for scenario in scenarios:
        row, results = _row(parts, scenario, speakers, bench)
        rows.append(row)
        scores += results
        rooms += [scenario.room is not None] * len(results)
        print(_line(row), file=sys.stderr, flush=True)
    result = summary(scores, rooms)
    result["passed"] = sum(row["passed"] for row in rows if not row["skipped"])
    result["runs"] = sum(row["runs"] for row in rows)
    result["clock"] = bench.clock.value
    busy = [run["cores_used_by_others"] for row in rows for run in row["results"]]
    known = [cores for cores in busy if cores is not None]
    result["cores_used_by_others"] = round(statistics.mean(known), 2) if known else None
    result["scenarios"] = rows
    return result


def _row(
    parts: Parts, scenario: Scenario, speakers: Speakers, bench: VoiceBench
) -> tuple[dict[str, Any], list[Scores]]:
    results: list[Scores] = []
    runs: list[dict[str, Any]] = []
    skipped = ""
    for number in range(bench.repeat):
        name = scenario.name if bench.repeat == 1 else f"{scenario.name}.{number}"
        files = files_in(bench.out, name)
        others = Others()
        try:
            one = run_scenario(parts, scenario, speakers, bench.clock, files)
        except MissingVoice as error:
            skipped = str(error)
            break
        scores = score(one)
        results.append(scores)
        beside = {"cores_used_by_others": others.cores()}
        runs.append({"timeline": str(files.timeline), "failures": failures(one, scores), **record(scores), **beside})
    row = {
        "name": scenario.name,
        "runs": len(runs),
        "passed": sum(not one["failures"] for one in runs),
        "skipped": skipped,
        "timeline": runs[0]["timeline"] if runs else None,
        "results": runs,
    }
    return row, results


def _line(row: dict[str, Any]) -> str:
    """A row for people."""
    if row["skipped"]:
        return f"{row['name']:28} left out: {row['skipped']}"
    reached = [value for one in row["results"] for value in one["voice_to_voice_ms"]]
    shown = f"{statistics.median(reached):4.0f} ms" if reached else "       "
    faults = "; ".join(fault for one in row["results"] for fault in one["failures"])
    return f"{row['name']:28} {row['passed']}/{row['runs']} {shown}  {faults}"


def show(result: dict[str, Any]) -> None:
    """The totals as lines."""
    to_voice, barge, room = result["voice_to_voice_ms"], result["barge_in"], result["open_speaker"]
    cases = result["cases"]
    print(f"scenarios as wished       {result['passed']} of {result['runs']}")
    print(f"others kept busy          {result['cores_used_by_others']} cores")
    print(f"voice to voice            P50 {to_voice['p50']} ms, P90 {to_voice['p90']} ms, n {to_voice['n']}")
    print(f"turns taken               {result['turn_tor']} of {cases['turns']}")
    print(f"pauses taken for ends     {result['pause_tor']} of {cases['pauses']}")
    print(f"backchannels obeyed       {result['backchannel_tor']} of {cases['backchannels']}")
    print(f"false alarms gone on      {result['false_alarm_resume']} of {cases['false_alarms']}")
    print(f"barge-in                  ducked P90 {barge['duck_ms_p90']} ms, silent P90 {barge['stop_ms_p90']} ms, "
          f"answered P50 {barge['response_ms_p50']} ms, n {barge['n']}")  # fmt: skip
    print(f"heard text within a word  {barge['heard_within_1_word']}")
    print(f"open speakers             {room['self_interruptions']} self-interruptions in {room['minutes']} min, "
          f"barge-ins {room['barge_in_rate']}")  # fmt: skip
    print(f"cut in when it should     {result['interjection']['hits']} of {result['interjection']['wanted']}, "
          f"when it should not {result['interjection']['false']}")  # fmt: skip
    print(f"words lost                {result['words_lost']} of {cases['words']}")
    print(f"tokens forwarded a turn   {result['tokens_forwarded_per_turn']}, "
          f"after the endpoint {result['tokens_after_endpoint_per_turn']}")  # fmt: skip
