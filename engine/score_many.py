"""Many scoring requests with common beginnings: each beginning is computed once, memory stays bounded.

Requests are sorted by their context, so that those with a common prefix are neighbours.  One session walks through
them: it is cut back to what the next context shares and extended by the rest; all continuations of one context are
scored together.  At any time it holds one context and the forks of one step, however many requests there are::

    A B C | x      append A B C,  score x and y        forwarded 3 (+ suffix rows)
    A B C | y
    A B D | x      cut to A B, append D, score x       forwarded 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.engine import Engine
from engine.errors import EngineError
from engine.pages.index import common_prefix
from engine.scoring import SuffixScore
from engine.settings import Priority

Request = tuple[Sequence[int], Sequence[int]]
"""Context ids (at least one) and continuation ids."""


@dataclass(frozen=True)
class ManyScores:
    """Scores in the order of the requests; tokens computed, and what scoring each alone would have computed.

    `peak_pages` is the most pages of the first cache group held at any time.
    """

    scores: list[SuffixScore]
    forwarded: int
    alone: int
    peak_pages: int

    @property
    def saved(self) -> int:
        """Tokens that were not computed again."""
        return self.alone - self.forwarded


def score_many(
    engine: Engine,
    requests: Sequence[Request],
    *,
    priority: Priority = Priority.BACKGROUND,
    progress: Callable[[int], None] | None = None,
) -> ManyScores:
    """Score all requests; `progress` is called with the number of finished ones."""
    if any(not context for context, _ in requests):
        raise EngineError("Every scoring request needs at least one context token.")
    order = sorted(range(len(requests)), key=lambda i: (tuple(requests[i][0]), i))
    scores: list[SuffixScore | None] = [None] * len(requests)
    engine.worker.call(engine.store.reset_peaks)
    with engine.new_session(priority=priority) as session:
        at = 0
        while at < len(order):
            context = list(requests[order[at]][0])
            end = at
            while end < len(order) and list(requests[order[end]][0]) == context:
                end += 1
            group = order[at:end]
            session.truncate(common_prefix(session.ids, context))
            session.append(context[len(session) :])
            for i, score in zip(group, session.score([requests[i][1] for i in group], priority=priority), strict=True):
                scores[i] = score
            at = end
            if progress is not None:
                progress(at)
        forwarded = session.stats.forwarded
    alone = sum(len(context) + max(0, len(suffix) - 1) for context, suffix in requests)
    done = [score for score in scores if score is not None]
    return ManyScores(done, forwarded, alone, engine.stats.pools[0].peak_held)
