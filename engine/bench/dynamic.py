"""Seeds 000 and 001: shared pages in a batch of prompts, and a prompt cache for many questions."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.engine import Engine
from engine.generate import Generation
from engine.jobs import AppendJob, Usage
from engine.loading import ModelFile
from engine.score_many import score_many
from engine.session import Session
from engine.settings import EngineSettings, Sampling

MIB = 1024 * 1024


@dataclass(frozen=True)
class BatchCounts:
    """One number a prompt, and the most pages held while the batch ran."""

    forwarded: list[int]
    referenced: list[int]
    copied: list[int]
    pages: int


@dataclass(frozen=True)
class GrowingMiddle:
    """The author's own plan: tokens computed in each round, in the round that cleans up, and without any reuse."""

    rounds: int
    forwarded_per_round: list[int]
    forwarded_at_cleanup: int
    forwarded_without_reuse: int


@dataclass(frozen=True)
class DynamicGeneration:
    """Seed 000."""

    first: BatchCounts
    second: BatchCounts
    growing: GrowingMiddle


def dynamic_generation(file: ModelFile, settings: EngineSettings, new_tokens: int = 300) -> DynamicGeneration:
    """The worked example with real tokens: prefix 400, middle 200, suffixes of 80, 81 and 82, page size 256."""
    with Engine(file, _with(settings, page_size=256, memory_bytes=512 * MIB)) as engine:
        random = np.random.default_rng(0)

        def words(n: int) -> list[int]:
            return random.integers(5, engine.shape.vocab, n).tolist()

        prefix, abcd, bcde, suffixes = words(400), words(200), words(200), [words(80), words(81), words(82)]
        first = _batch(engine, [prefix + abcd + suffix for suffix in suffixes], new_tokens)
        second = _batch(engine, [prefix + bcde + suffix for suffix in suffixes], new_tokens)
        return DynamicGeneration(first, second, _growing(engine, prefix, bcde, suffixes, words(24)))


def _batch(engine: Engine, prompts: Sequence[list[int]], new_tokens: int) -> BatchCounts:
    """All prompts at once, each continued by `new_tokens`."""
    engine.worker.call(engine.store.reset_peaks)
    sessions = [engine.new_session() for _ in prompts]
    jobs = [AppendJob(session.slot, prompt) for session, prompt in zip(sessions, prompts, strict=True)]
    futures = [engine.worker.submit(job) for job in jobs]
    usages: list[Usage] = [future.result() for future in futures]
    sampling = Sampling(max_tokens=new_tokens, stop_at_end_of_turn=False)
    running: list[Generation] = [session.generate(sampling) for session in sessions]
    for generation in running:
        generation.wait()
    pages = engine.stats.pools[0].peak_held
    for session in sessions:
        session.close()
    return BatchCounts(
        [usage.forwarded for usage in usages],
        [usage.referenced for usage in usages],
        [usage.copied for usage in usages],
        pages,
    )


def _growing(
    engine: Engine, prefix: list[int], middle: list[int], suffixes: Sequence[list[int]], grown: list[int]
) -> GrowingMiddle:
    """prefix + abcd, + abcde, + abcdef ...; when it is full, prefix + the last part of the middle, and on."""
    per_round, without, cleanup = [], 0, 0
    middle = list(middle)
    session = engine.new_session(prefix + middle)
    for number, token in enumerate(grown):
        if number == len(grown) // 2:  # "getting full": keep the recent half of the middle
            middle = middle[len(middle) // 2 :]
            before = session.stats.forwarded
            session.truncate(len(prefix))
            session.append(middle)
            cleanup = session.stats.forwarded - before
        middle.append(token)
        count = session.append([token]).forwarded
        for suffix in suffixes:
            with session.fork() as fork:
                count += fork.append(suffix).forwarded
            without += len(prefix) + len(middle) + len(suffix)
        per_round.append(count)
    session.close()
    return GrowingMiddle(len(grown), per_round, cleanup, without)


# ---- seed 001 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PromptCache:
    """Seed 001.  Log-probabilities with the shared prefix against each question computed alone."""

    questions: int
    prefix_tokens: int
    forwarded_with: int
    forwarded_without: int
    max_abs_logprob_diff: float
    peak_pages: int
    saved_bytes: int
    forwarded_after_load: int
    max_abs_logprob_diff_after_load: float


_HEAD = "The following are multiple choice questions (with answers) about anatomy.\n\n"
_SHOTS = (
    ("Which bone is found in the thigh?", "Femur", ("Femur", "Tibia", "Ulna", "Radius")),
    ("Which organ pumps blood through the body?", "Heart", ("Lung", "Heart", "Liver", "Kidney")),
    ("How many chambers does the human heart have?", "Four", ("Two", "Three", "Four", "Five")),
    ("Which organ filters blood and makes urine?", "Kidney", ("Spleen", "Heart", "Kidney", "Stomach")),
)
_QUESTIONS = (
    ("Which part of the eye controls how much light enters?", ("Iris", "Lens", "Retina", "Cornea")),
    ("Where in the body is the hamstring?", ("Leg", "Arm", "Neck", "Back")),
    ("Which organ makes insulin?", ("Pancreas", "Liver", "Kidney", "Spleen")),
    ("What joins muscle to bone?", ("Tendon", "Ligament", "Cartilage", "Nerve")),
    ("Which is the largest organ of the human body?", ("Skin", "Liver", "Brain", "Heart")),
    ("Which gas do the lungs take from the air?", ("Oxygen", "Nitrogen", "Helium", "Argon")),
    ("Where is the femur?", ("Leg", "Arm", "Head", "Hand")),
    ("Which tooth is made for cutting?", ("Incisor", "Molar", "Canine", "Premolar")),
)


def prompt_cache(file: ModelFile, settings: EngineSettings) -> PromptCache:
    """Score four answers to each question, with one prefix for all, alone, and from a prefix saved to disk."""
    with Engine(file, _with(settings, memory_bytes=256 * MIB)) as engine:
        encode = engine.tokenizer.encode
        shots = "".join(f"Question: {q}\nAnswer: {a}\n\n" for q, a, _ in _SHOTS)
        prefix = encode(_HEAD + shots)
        requests = [
            (prefix + encode(f"Question: {question}\nAnswer:"), encode(" " + answer))
            for question, answers in _QUESTIONS
            for answer in answers
        ]
        shared = score_many(engine, requests)
        alone, forwarded = [], 0
        for context, suffix in requests:
            engine.drop_cache()
            with engine.new_session(context) as session:
                alone.append(session.score([suffix])[0].total)
                forwarded += session.stats.forwarded
        totals = [score.total for score in shared.scores]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prefix.safetensors"
            with engine.new_session(prefix) as session:
                session.save(path)
            size = path.stat().st_size
            engine.drop_cache()
            loaded = engine.load_session(path)
            before = loaded.stats.forwarded
            again = [_score_behind(loaded, context[len(prefix) :], suffix) for context, suffix in requests]
        return PromptCache(
            questions=len(_QUESTIONS),
            prefix_tokens=len(prefix),
            forwarded_with=shared.forwarded,
            forwarded_without=forwarded,
            max_abs_logprob_diff=float(np.abs(np.subtract(totals, alone)).max()),
            peak_pages=shared.peak_pages,
            saved_bytes=size,
            forwarded_after_load=loaded.stats.forwarded - before + sum(count for _, count in again),
            max_abs_logprob_diff_after_load=float(np.abs(np.subtract([t for t, _ in again], alone)).max()),
        )


def _score_behind(session: Session, question: list[int], suffix: list[int]) -> tuple[float, int]:
    with session.fork() as fork:
        before = fork.stats.forwarded
        fork.append(question)
        total = fork.score([suffix])[0].total
        return total, fork.stats.forwarded - before


def _with(settings: EngineSettings, **changes: object) -> EngineSettings:
    return replace(settings, **changes)  # type: ignore[arg-type]
