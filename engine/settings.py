"""Everything one can choose: about the engine, and about one generation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Priority(IntEnum):
    """Who goes first when several jobs want the next step."""

    SPEAKING = 0
    PROBE = 1
    DRAFT = 2
    BACKGROUND = 3


@dataclass(frozen=True)
class EngineSettings:
    """Settings of one engine, fixed at load.

    device          "cpu", "cuda", "reference" or "reference-exact"
    threads         CPU threads the back end may use
    page_size       positions in a page
    memory_bytes    hard limit of all pages together
    kv_dtype        "float16", "float32" or "int8", as the back end supports
    context         longest sequence; None means the model's own limit
    window_slack    positions kept behind a sliding window, so that a rollback of that many is free; None keeps all
    ring_sessions   how many sequences' windows the ring pages are sized for
    step_ms         what one step may take while prompts are read: a cancel waits at most this long
    prefill_chunk   fixed rows a prefill step instead of adapting them to `step_ms`: makes runs repeatable on back ends
                    whose rounding depends on the number of rows
    max_rows        most rows in one step
    validate        check all bookkeeping after every operation (tests)
    """

    device: str = "cpu"
    threads: int = 1
    page_size: int = 32
    memory_bytes: int = 256 * 1024 * 1024
    kv_dtype: str = "float16"
    context: int | None = None
    window_slack: int | None = 256
    ring_sessions: int = 8
    step_ms: float = 60.0
    prefill_chunk: int | None = None
    max_rows: int = 512
    validate: bool = False


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; the default is greedy.

    The order is: logit bias, repetition and presence penalties, temperature, top-k, top-p, min-p, draw.  Penalties
    look at the last `penalty_last` ids of the session.  With the same `seed` the same tokens come, whatever else is in
    the batch.  A stop string is not part of the text, and its tokens are not kept in the session.

    `lookup` > 0 guesses up to so many tokens a step from earlier occurrences of the last few (engine/lookup.py).  The
    tokens that come out are the same; where the reply repeats the context, several come from one step.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    penalty_last: int = 256
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_at_end_of_turn: bool = True
    lookup: int = 0
