"""What `Reply` needs of a session, on a stream of text."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from assistant.llm_openai.client import Counts, LlmError, Stream
from assistant.llm_openai.model import Message, RemoteModel
from engine import Sampling, Token


class RemoteGeneration:
    """An answer as it is streamed: each delta counts as a token."""

    def __init__(self, model: RemoteModel, messages: Sequence[Message], sampling: Sampling, cancel: threading.Event):
        self._model, self._messages, self._sampling, self._cancel = model, messages, sampling, cancel
        self._over = threading.Event()
        self._stream: Stream | None = model.stream(messages, sampling, cancel)

    def __iter__(self) -> Iterator[Token]:
        """LlmError if the server fails."""
        count = 0
        while True:
            stream = self._stream
            if stream is None:
                return
            try:
                for text in stream:
                    count += 1
                    yield Token(-1, text, count, 0.0)
                return
            except LlmError as error:
                if count or self._over.is_set() or not self._model.simpler(error):
                    raise
                self._stream = self._model.stream(self._messages, self._sampling, self._cancel)

    def cancel(self) -> None:
        """Hang up (any thread)."""
        self._over.set()
        if self._stream is not None:
            self._stream.close()

    @property
    def counts(self) -> Counts:
        """What the server said it cost; zeros if it did not get that far."""
        return self._stream.counts if self._stream is not None else Counts()


class RemoteSession:
    """The messages that an answer is made to."""

    def __init__(self, model: RemoteModel, messages: Sequence[Message], *, opened: int = 0) -> None:
        """`opened`: pieces of the answer that are given."""
        self._model = model
        self._messages = tuple(messages)
        self._opened = opened
        self.generation: RemoteGeneration | None = None

    def __len__(self) -> int:
        return self._opened

    def generate(self, sampling: Sampling, *, cancel: threading.Event, ahead: int = 0) -> RemoteGeneration:
        """Ask the server. How far it computes ahead is its own affair."""
        self.generation = RemoteGeneration(self._model, self._messages, sampling, cancel)
        return self.generation

    def close(self) -> None:
        """Hang up."""
        if self.generation is not None:
            self.generation.cancel()
