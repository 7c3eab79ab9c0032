"""How finished do words sound to a model? Fits configs/endpoint/<model>.yaml from labelled requests.

    python scripts/calibrate_endpoint.py [--model smollm2-135m] [--persona default] [--check]

Each request goes through the same path as in a conversation (`Dialogue.listen`, behind the persona's prompt), its
log-odds are put on a logistic curve with both classes weighing the same, and the curve's two numbers are written.
`--check` only measures with the numbers that are there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import yaml

from assistant.calibrations import calibration_file, calibration_of
from assistant.conversation.dialogue import Dialogue
from assistant.endpoint import Calibration, EndpointRules, Evidence, calibrated, required_silence
from assistant.models import find_model
from assistant.personas import load_persona
from engine import Engine, EngineSettings

EXAMPLES = Path(__file__).parent / "endpoint_requests.yaml"
PRIOR = 0.002
"""Pull towards 0: classes that can be told apart have no largest likelihood."""


def scores(model: str, persona: str, texts: list[str]) -> np.ndarray:
    """Log-odds of each text being a whole turn, each as a fresh user turn."""
    engine = Engine.load(find_model(model), EngineSettings())
    try:
        dialogue = Dialogue(engine, load_persona(persona), mouth=None, clock=lambda: 0.0)  # type: ignore[arg-type]
        found = []
        for text in texts:
            found.append(dialogue.listen(text))
            dialogue.forget_tail()
        return np.array(found)
    finally:
        engine.close()


def fit(odds: np.ndarray, labels: np.ndarray) -> Calibration:
    """Logistic regression by Newton's method with halved steps, the classes weighing the same."""
    weights = np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum())
    middle, width = float(odds.mean()), float(odds.std())
    rows = np.stack([(odds - middle) / width, np.ones_like(odds)], axis=1)
    signs = np.where(labels, 1.0, -1.0)

    def loss(at: np.ndarray) -> float:
        return float((weights * np.logaddexp(0, -signs * (rows @ at))).sum() + 0.5 * PRIOR * (at**2).sum())

    at = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-(rows @ at)))
        slope = rows.T @ (weights * (p - labels)) + PRIOR * at
        curve = (rows * (weights * p * (1 - p))[:, None]).T @ rows + PRIOR * np.eye(2)
        step = np.linalg.solve(curve, slope)
        while loss(at - step) > loss(at) and np.abs(step).max() > 1e-9:
            step = step / 2
        at = at - step
        if np.abs(step).max() < 1e-9:
            break
    a, b = at[0] / width, at[1] - at[0] * middle / width
    return Calibration(slope=round(float(a), 4), offset=round(float(b), 4))


def area(odds: np.ndarray, labels: np.ndarray) -> float:
    """Area under the curve: how often a finished request scores above an unfinished one."""
    good, bad = odds[labels], odds[~labels]
    return float((good[:, None] > bad).mean() + 0.5 * (good[:, None] == bad).mean())


def cross_validated(odds: np.ndarray, labels: np.ndarray, folds: int = 5) -> float:
    """Share of texts on the right side of 0.5, each judged by a curve fitted to the others."""
    place = np.random.default_rng(0).permutation(len(odds)) % folds
    right = 0
    for fold in range(folds):
        curve = fit(odds[place != fold], labels[place != fold])
        held = np.flatnonzero(place == fold)
        right += sum((calibrated(odds[i], curve) >= 0.5) == labels[i] for i in held)
    return right / len(odds)


def report(odds: np.ndarray, labels: np.ndarray, texts: list[str], curve: Calibration) -> dict:
    """What the curve reaches on these texts."""
    p = np.array([calibrated(value, curve) for value in odds])
    bad = np.sort(odds[~labels])[::-1]
    at_five = bad[int(0.05 * len(bad))]
    waits = np.array([
        required_silence(Evidence(f"{text}." if done else text, value), EndpointRules()) / 16
        for text, value, done in zip(texts, p, labels, strict=True)
    ])  # fmt: skip
    return {
        "texts": {"finished": int(labels.sum()), "unfinished": int((~labels).sum())},
        "auc": round(area(odds, labels), 4),
        "finished_found_at_5_percent_false": round(float((odds[labels] > at_five).mean()), 4),
        "right_cross_validated": round(cross_validated(odds, labels), 4),
        "operating_points": {
            str(limit): {
                "finished_found": round(float((p[labels] >= limit).mean()), 4),
                "unfinished_taken": round(float((p[~labels] >= limit).mean()), 4),
            }
            for limit in (0.2, 0.5, 0.8, 0.9)
        },
        "wait_ms": {
            "finished_median": round(float(np.median(waits[labels]))),
            "unfinished_median": round(float(np.median(waits[~labels]))),
        },
        "worst_unfinished": [texts[i] for i in np.argsort(-np.where(labels, -1, p))[:6]],
        "worst_finished": [texts[i] for i in np.argsort(np.where(labels, p, 2))[:6]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--persona", default="default")
    parser.add_argument("--examples", type=Path, default=EXAMPLES)
    parser.add_argument("--check", action="store_true", help="measure with the calibration that is there")
    chosen = parser.parse_args()
    examples = yaml.safe_load(chosen.examples.read_text(encoding="utf-8"))
    texts = [*examples["finished"], *examples["unfinished"]]
    labels = np.arange(len(texts)) < len(examples["finished"])
    odds = scores(chosen.model, chosen.persona, texts)
    path = calibration_file(find_model(chosen.model))
    curve = calibration_of(find_model(chosen.model)) if chosen.check else fit(odds, labels)
    result = report(odds, labels, texts, curve)
    print(json.dumps({"model": chosen.model, "slope": curve.slope, "offset": curve.offset, **result}, indent=1))
    if not chosen.check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"# Made by scripts/calibrate_endpoint.py: {result['texts']['finished']} finished requests, "
            f"{result['texts']['unfinished']} unfinished beginnings, AUC {result['auc']}.\n"
            f"slope: {curve.slope}\noffset: {curve.offset}\n",
            encoding="utf-8",
        )
        print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
