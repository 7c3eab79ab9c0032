"""Stands where the engine stands: what the parts of a process share of a model that runs elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from assistant.llm_openai.choice import LlmChoice
from assistant.llm_openai.client import LlmError, Rejected, Server, Stream
from engine import Sampling
from engine.engine import EngineStats

LOG = logging.getLogger("crosstalk.llm")
Message = dict[str, str]
_LACKING = {
    "probes": "whether a turn is finished is judged by words and silence, not by the model",
    "judge": "reasons to cut in that the model judges are not used",
    "opening": "an answer with a given beginning ends with it",
    "sampling": "top-k, min-p and repetition penalty are left to the server",
    "usage": "tokens are not counted: the server does not report them",
}
"""What such a server cannot do, and what is done instead; each is logged once."""


class RemoteModel:
    """A server and what is known about it. Any thread."""

    def __init__(self, choice: LlmChoice) -> None:
        """LlmError for an address that is none. A server that does not answer yet is waited for turn by turn."""
        self.choice = choice
        self.server = Server(choice)
        self.requests = 0
        self.generated = 0
        self.closed = False
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._extras = True
        """The server takes what OpenAI's own protocol does not have."""
        LOG.warning("what is said goes to %s", choice.base_url)
        try:
            known = self.server.models()
        except LlmError as error:
            LOG.warning("%s It is tried again with every turn.", error)
        else:
            if known and choice.model not in known:
                LOG.warning("%s knows no model '%s'; it has %s.", choice.base_url, choice.model, ", ".join(known[:9]))

    def lacks(self, what: str) -> None:
        """Something is asked for that such a server cannot do: say so, once."""
        with self._lock:
            if what in self._told:
                return
            self._told.add(what)
        LOG.warning("a server cannot do everything: %s.", _LACKING[what])

    def stream(self, messages: Sequence[Message], sampling: Sampling, cancel: threading.Event) -> Stream:
        """Begin an answer."""
        self.requests += 1
        return self.server.stream(self._request(messages, sampling), cancel)

    def simpler(self, error: LlmError) -> bool:
        """Whether it is worth asking again without what not every server knows."""
        if not isinstance(error, Rejected) or not self._extras:
            return False
        self._extras = False
        self.lacks("sampling")
        self.lacks("usage")
        return True

    def _request(self, messages: Sequence[Message], sampling: Sampling) -> Mapping[str, Any]:
        request: dict[str, Any] = {
            "model": self.choice.model,
            "messages": list(messages),
            "stream": True,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if self._extras:
            request["stream_options"] = {"include_usage": True}
            if sampling.top_k:
                request["top_k"] = sampling.top_k
            if sampling.min_p:
                request["min_p"] = sampling.min_p
            if sampling.repetition_penalty != 1.0:
                request["repetition_penalty"] = sampling.repetition_penalty
        return request

    @property
    def stats(self) -> EngineStats:
        """As an engine's; what happens elsewhere is not known."""
        return EngineStats(self.requests, self.generated, 0, 0, ())

    def close(self) -> None:
        """Nothing is held."""
        self.closed = True
