"""lm-evaluation-harness on this engine: the same numbers as its Hugging Face back end, common prefixes computed once.

Needs the extra `eval`.  From Python::

    lm_eval.simple_evaluate(model=EngineLM(engine), tasks=[...])

Encoding is the harness's own: context and continuation are encoded together and split at the context's length, and
spaces at the end of the context belong to the continuation.  What differs is the order of work and the number of tokens
forwarded: `EngineLM.counts` has both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from engine.engine import Engine
from engine.errors import EngineError
from engine.generate import Finish
from engine.score_many import Request, score_many
from engine.settings import Sampling


@dataclass
class Counts:
    """Tokens forwarded so far, and what computing every request by itself would have forwarded."""

    forwarded: int = 0
    alone: int = 0


class EngineLM(TemplateLM):
    """A model of the harness.  Long inputs lose tokens on the left, as in the harness."""

    def __init__(self, engine: Engine, max_gen_toks: int = 256) -> None:
        super().__init__()
        self.engine = engine
        self.counts = Counts()
        self.max_gen_toks = max_gen_toks
        self.max_length = engine.context

    # ---- what the harness asks about the model ----------------------------------------------------------------

    @property
    def eot_token_id(self) -> int:
        vocabulary = self.engine.tokenizer.vocabulary
        token = vocabulary.eos if vocabulary.eos is not None else next(iter(vocabulary.stop_tokens), None)
        if token is None:
            raise EngineError("The model names no end-of-text token, which the harness needs.")
        return token

    @property
    def prefix_token_id(self) -> int:
        bos = self.engine.tokenizer.vocabulary.bos
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self) -> str:
        return self.engine.name.replace("/", "__")

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return self.engine.template.render(chat_history, add_generation_prompt)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Control tokens in the text count (templates write them); a beginning-of-text token if the model wants one."""
        ids = self.engine.tokenizer.encode(string, special=True)
        bos = self.engine.tokenizer.bos_id
        if bos is not None and add_special_tokens is not False and ids[:1] != [bos]:
            return [bos, *ids]
        return ids

    # ---- scoring ----------------------------------------------------------------------------------------------

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        prepared = [self._cut(context, continuation) for _, context, continuation in requests]
        result = score_many(self.engine, prepared)
        self.counts.forwarded += result.forwarded
        self.counts.alone += result.alone
        return [(score.total, score.greedy) for score in result.scores]

    def _cut(self, context: Sequence[int], continuation: Sequence[int]) -> Request:
        """The last `max_length` inputs: the continuation's last token is predicted, never read."""
        if len(continuation) > self.max_length:
            raise EngineError(f"A continuation of {len(continuation)} tokens exceeds the context of {self.max_length}.")
        room = self.max_length + 1 - len(continuation)
        return list(context)[-room:], continuation

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        windows, owner = [], []
        for number, request in enumerate(requests):
            (text,) = request.args
            ids = self.tok_encode(text)
            for window in get_rolling_token_windows(ids, self.prefix_token_id, self.max_length, 1):
                context, continuation = make_disjoint_window(window)
                windows.append((("", ""), context, continuation))
                owner.append(number)
        totals = [0.0] * len(requests)
        for number, (total, _) in zip(owner, self._loglikelihood_tokens(windows), strict=True):
            totals[number] += total
        return totals

    # ---- generating -------------------------------------------------------------------------------------------

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """In order of context, so that neighbours share their prefix."""
        answers = [""] * len(requests)
        for number in sorted(range(len(requests)), key=lambda i: requests[i].args[0]):
            context, options = requests[number].args
            until = options.get("until") or []
            most = int(options.get("max_gen_toks", self.max_gen_toks))
            sampling = Sampling(
                max_tokens=most,
                temperature=float(options.get("temperature", 0.0)) if options.get("do_sample") else 0.0,
                top_p=float(options.get("top_p", 1.0)),
                top_k=int(options.get("top_k", 0)),
                stop=(until,) if isinstance(until, str) else tuple(until),
            )
            ids = self.tok_encode(context)[-(self.max_length - most) :]
            with self.engine.new_session(ids) as session:
                generation = session.generate(sampling)
                text = generation.text()
                if (
                    generation.finish is not Finish.STOP
                ):  # a character cut off at the limit counts as the harness has it
                    text = self.engine.tokenizer.decode(session.ids[len(ids) :])
                answers[number] = text
                self.counts.forwarded += session.stats.forwarded
                self.counts.alone += len(session)
        return answers
