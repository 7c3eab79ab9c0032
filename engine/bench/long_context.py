"""What four ways of forgetting do to a conversation: the measurement behind docs/long-context.md.

Each policy brings the same history under the same budget right before a turn; then two things are asked: can a number
told earlier still be named, and how likely is the turn that really followed (its log-probability a token, against what
the model gives it with the whole history).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.bench.rolling import FILLER, KEYS
from engine.bench.variants import windowed
from engine.engine import Engine
from engine.loading import read_model
from engine.session import Session
from engine.settings import EngineSettings, Sampling

MIB = 1024 * 1024
SYSTEM = "You are a friendly assistant. Answer each question in one or two short sentences."
QUESTIONS = (
    "What is the capital of France?",
    "How many legs does a spider have?",
    "What do bees make?",
    "Why is the sky blue?",
    "What is the largest ocean?",
    "How does a sailing boat move?",
    "What is bread made of?",
    "Who was Isaac Newton?",
    "What is a volcano?",
    "Why do leaves fall in autumn?",
    "What is the moon made of?",
    "How do fish breathe?",
    "What is a good breakfast?",
    "Where do penguins live?",
    "How long is a year?",
    "What is an island?",
    "Why do we sleep?",
    "What is the fastest land animal?",
    "How is cheese made?",
    "What is a rainbow?",
    "What does a teacher do?",
    "Why is sea water salty?",
    "What is a clock for?",
    "How do birds fly?",
)


@dataclass(frozen=True)
class PolicyResult:
    """One policy: keys named (share of five) by where they were told, and how likely the following turns were.

    logprob           mean log-probability a token of the turns that really followed
    worst             the least likely turn's mean
    kept              tokens left after forgetting, mean
    recomputed        tokens forwarded again for it, mean (compaction does this in idle time)
    """

    policy: str
    passkey_in_system: float
    passkey_in_dropped: float
    passkey_in_recent: float
    chat_passkey_in_system: float
    chat_passkey_in_recent: float
    logprob: float
    worst: float
    kept: float
    recomputed: float


@dataclass(frozen=True)
class LongContext:
    """All policies at one budget."""

    budget: int
    history: int
    turns: int
    policies: list[PolicyResult]

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries."""
        return asdict(self)


Policy = Callable[[Session, int, list[int], int], Session]
"""(session, pinned length, starts of its turns, budget) -> the session that fits; may be another one."""


def _everything(session: Session, pinned: int, turns: list[int], budget: int) -> Session:
    return session


def _shift(keep: Callable[[int], int]) -> Policy:
    """Drop the older half of what is not kept until it fits, and turn the later keys back."""

    def apply(session: Session, pinned: int, turns: list[int], budget: int) -> Session:
        while len(session) > budget:
            kept = keep(pinned)
            session.shift(kept, min((len(session) - kept) // 2, len(session) - kept - 1))
        return session

    return apply


def _compact(session: Session, pinned: int, turns: list[int], budget: int) -> Session:
    """Keep the pinned beginning and as many whole recent turns as fit in half of the rest, computed again."""
    room = pinned + (budget - pinned) // 2
    start = next((at for at in turns if at > pinned and pinned + len(session) - at <= room), turns[-1])
    ids = session.ids
    copy = session.engine.new_session(ids[:pinned] + ids[start:])
    session.close()
    return copy


POLICIES: dict[str, Policy] = {
    "whole history": _everything,
    "rolling window": _everything,  # in an engine whose every layer has a window of the budget
    "shift, nothing kept": _shift(lambda pinned: 0),
    "shift, 4 sinks kept": _shift(lambda pinned: 4),
    "shift, system kept": _shift(lambda pinned: pinned),
    "compaction": _compact,
}


def run_long_context(
    path: Path,
    settings: EngineSettings | None = None,
    budget: int = 512,
    progress: Callable[[str], None] = lambda line: None,
) -> LongContext:
    """Measure all policies on the model at `path`."""
    file = read_model(path)
    settings = replace(settings or EngineSettings(), memory_bytes=192 * MIB)
    with Engine(file, settings) as whole:
        progress("letting the model hold the conversation")
        spoken = _converse(whole)
        history = sum(len(turn) for turn in spoken)
        results = []
        for name, policy in POLICIES.items():
            progress(name)
            if name == "rolling window":
                with Engine(windowed(file, budget), settings) as ring:
                    results.append(_measure(name, policy, ring, spoken, budget))
            else:
                results.append(_measure(name, policy, whole, spoken, budget))
    return LongContext(budget, history, len(spoken) - 1, results)


def _converse(engine: Engine) -> list[list[int]]:
    """System prompt, then one entry a turn: the question's fragments, the model's own answer, its close."""
    template = engine.template
    spoken = [template.system(SYSTEM)]
    session = engine.new_session(spoken[0])
    for number, question in enumerate(QUESTIONS):
        asked = template.user(question, after_system=number == 0)
        before = len(session)
        session.append(asked)
        session.generate(Sampling(max_tokens=48, repetition_penalty=1.1)).wait()
        session.append(template.assistant_close())
        spoken.append(session.ids[before:])
    session.close()
    return spoken


def _measure(name: str, policy: Policy, engine: Engine, spoken: list[list[int]], budget: int) -> PolicyResult:
    logprobs: list[float] = []
    kept: list[int] = []
    recomputed: list[int] = []
    turns: list[int] = []
    session, pinned = engine.new_session(spoken[0]), len(spoken[0])
    for turn in spoken[1:]:
        length = len(session)
        if length > budget:
            fork, before = session.fork(), session.stats.forwarded
            fits = policy(fork, pinned, turns, budget)
            kept.append(min(len(fits), budget if name == "rolling window" else len(fits)))
            recomputed.append(len(fits) if fits is not fork else 0)
            score = fits.score([turn])[0]
            logprobs.append(score.total / len(turn))
            fits.close()
            assert session.stats.forwarded == before and len(session) == length
        turns.append(length)
        session.append(turn)
    session.close()
    n = len(logprobs)
    return PolicyResult(
        policy=name,
        passkey_in_system=_passkey(engine, policy, budget, "system"),
        passkey_in_dropped=_passkey(engine, policy, budget, "dropped"),
        passkey_in_recent=_passkey(engine, policy, budget, "recent"),
        chat_passkey_in_system=_passkey_in_chat(engine, policy, budget, "system"),
        chat_passkey_in_recent=_passkey_in_chat(engine, policy, budget, "recent"),
        logprob=sum(logprobs) / n,
        worst=min(logprobs),
        kept=sum(kept) / n,
        recomputed=sum(recomputed) / n,
    )


def _passkey(engine: Engine, policy: Policy, budget: int, place: str) -> float:
    """Share of the keys named when told in the pinned beginning, in a part long gone, or recently.

    Plain text of twice the budget, not a chat: this small model names keys from plain text at any distance it was
    trained for, so that a miss is the policy's.
    """
    encode, found, total = engine.tokenizer.encode, 0, 2 * budget
    for key in KEYS:
        told = f" The pass key is {key}. Remember it. {key} is the pass key."
        ids = encode("A note about the weather and a pass key." + (told if place == "system" else ""))
        turns: list[int] = []
        pinned, wanted = len(ids), {"dropped": total // 8, "recent": total - budget // 6}.get(place)
        while len(ids) < total:
            turns.append(len(ids))
            ids += encode(" " + FILLER.strip())
            if wanted is not None and len(ids) >= wanted:
                ids, wanted = ids + encode(told), None
        fits = policy(engine.new_session(ids), pinned, turns, budget)
        fits.append(encode(" What is the pass key? The pass key is"))
        found += str(key) in fits.generate(Sampling(max_tokens=8)).text()
        fits.close()
    return found / len(KEYS)


def _passkey_in_chat(engine: Engine, policy: Policy, budget: int, place: str) -> float:
    """The same in the chat template, where the small model is at its limit: the prompt head and the cut both count."""
    template, found, total = engine.template, 0, 2 * budget
    for key in KEYS:
        told = f" The pass key is {key}. Remember it."
        ids = template.system(SYSTEM + (told if place == "system" else ""))
        turns: list[int] = []
        pinned, wanted = len(ids), total - budget // 6 if place == "recent" else None
        while len(ids) < total:
            now = wanted is not None and len(ids) >= wanted
            wanted = None if now else wanted
            turns.append(len(ids))
            ids += template.user(FILLER.strip() + (told if now else ""), after_system=len(turns) == 1)
            ids += template.assistant("Okay.")
        fits = policy(engine.new_session(ids), pinned, turns, budget)
        fits.append(template.user("What is the pass key?") + engine.tokenizer.encode("The pass key is"))
        found += str(key) in fits.generate(Sampling(max_tokens=8)).text()
        fits.close()
    return found / len(KEYS)


def lines(result: LongContext) -> list[str]:
    """A table for people."""
    out = [
        f"budget {result.budget} tokens, conversation of {result.history} tokens in {result.turns} turns",
        f"{'policy':22s} {'key in system':>13s} {'dropped':>8s} {'recent':>7s} {'chat sys':>8s} "
        f"{'chat rec':>8s} {'logprob':>8s} {'worst':>7s} {'kept':>6s} {'again':>6s}",
    ]
    for p in result.policies:
        out.append(
            f"{p.policy:22s} {p.passkey_in_system:13.0%} {p.passkey_in_dropped:8.0%} {p.passkey_in_recent:7.0%} "
            f"{p.chat_passkey_in_system:8.0%} {p.chat_passkey_in_recent:8.0%} "
            f"{p.logprob:8.3f} {p.worst:7.3f} {p.kept:6.0f} {p.recomputed:6.0f}"
        )
    return out
