"""Conversations with a language model behind a real server process: streamed, cancelled, cached, failing."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assistant.audio.constants import FRAME
from assistant.build import AssistantSettings, ModelPaths, Parts, converse
from assistant.build import load as load_parts
from assistant.conversation.conversation import Conversation
from assistant.conversation.workers import InlineWorkers
from assistant.llm_openai.choice import LlmChoice, LlmKind
from assistant.llm_openai.client import LlmError, Server, Stream
from assistant.llm_openai.dialogue import FILE, RemoteKept, load_remote
from assistant.llm_openai.model import RemoteModel
from assistant.personas import Persona, load_persona
from assistant.replay import VirtualClock
from assistant.timeline.events import Event, EventType, Turn
from engine import SavedSessionError
from tests.loaded import loaded

ROOT = Path(__file__).parents[2]
SILENCE = np.zeros(FRAME, np.float32)


class Elsewhere:
    """The server process."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-m", "tests.llm_openai.server", str(model), *options]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.choice = LlmChoice(LlmKind.OPENAI, f"http://127.0.0.1:{self.port}/v1", "smollm2")

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats"))
        return found

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


@contextmanager
def running(model: Path, *options: str) -> Iterator[Elsewhere]:
    server = Elsewhere(model, *options)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def server(smollm2_path: Path) -> Iterator[Elsewhere]:
    with running(smollm2_path) as opened:
        yield opened


@pytest.fixture
def here(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    return loaded(smollm2_path, whisper_path, piper_path)


class Talk:
    """A conversation of typed lines."""

    def __init__(self, here: Parts, choice: LlmChoice, persona: Persona, kept: RemoteKept | None = None) -> None:
        parts = replace(here, engine=RemoteModel(choice))
        assert parts.remote is not None
        self.events: list[Event] = []
        self.turns: dict[int, Turn] = {}
        self.conversation: Conversation = converse(
            parts, persona, InlineWorkers(), VirtualClock().now, self.events.append, self._turn, silent=True, kept=kept
        )

    def _turn(self, turn: Turn) -> None:
        self.turns[turn.index] = turn

    def ask(self, text: str) -> Turn:
        self.conversation.say_text(text)
        for _ in range(600):
            self.conversation.frame(SILENCE)
            if self.conversation.idle:
                break
        self.conversation.deliver()
        return self.turns[max(self.turns)]


def test_the_same_answers_as_the_engine_here_and_only_new_tokens(here: Parts, server: Elsewhere) -> None:
    persona = load_persona("default")
    talk = Talk(here, server.choice, persona)
    turns: list[Turn] = []
    own = converse(here, persona, InlineWorkers(), VirtualClock().now, on_turn=turns.append, silent=True)
    for question in ("What is the capital of France?", "How many legs does a spider have?", "And an ant?"):
        far = talk.ask(question)
        own.say_text(question)
        while not own.idle:
            own.frame(SILENCE)
        own.deliver()
        assert far.assistant_text == turns[-1].assistant_text != ""
        asked = server.requests()[-1]
        assert far.tokens.referenced == asked["cached"] and far.tokens.forwarded == asked["forwarded"]
        if far.index:  # what was said before is found in the server's prefix cache
            assert asked["forwarded"] < 40 < asked["cached"] + 1
    own.close()
    talk.conversation.close()


def test_a_cancel_hangs_up_at_once_and_the_cut_past_is_sent(here: Parts, smollm2_path: Path) -> None:
    with running(smollm2_path, "--slow", "0.05") as slow:
        stream = Server(slow.choice).stream(
            {"model": "x", "messages": [{"role": "user", "content": "Count."}], "max_tokens": 400, "temperature": 0.0},
            cancel := threading.Event(),
        )
        taken = iter(stream)
        next(taken)
        begun = time.monotonic()
        cancel.set()
        assert list(taken) == []
        took = time.monotonic() - begun
        while not slow.requests()[-1]["done"]:
            time.sleep(0.02)
        asked = slow.requests()[-1]
        assert asked["hung_up"] and asked["generated"] < 20
        assert took < 1.0  # 10 ms on a quiet machine
        print(f"cancel: {took * 1000:.0f} ms here, {asked['generated']} tokens were made there")


def test_a_strict_server_gets_a_simpler_request(
    here: Parts, smollm2_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    persona = Persona.model_validate(load_persona("default").model_dump() | {"sampling": {"top_k": 5}})
    logging.getLogger("crosstalk").propagate = True
    with running(smollm2_path, "--strict") as strict, caplog.at_level(logging.WARNING):
        talk = Talk(here, strict.choice, persona)
        assert "Paris" in talk.ask("What is the capital of France?").assistant_text
        assert talk.ask("And of Italy?").assistant_text
        assert len(strict.requests()) == 2
        talk.conversation.close()
    # A daemon's log, made earlier in this process, may have one record come to `caplog` by two ways: count records.
    told = [record.getMessage() for record in {id(record): record for record in caplog.records}.values()]
    assert sum("top-k" in line for line in told) == 1 and sum("what is said goes to" in line for line in told) == 1
    assert sum("judged by words and silence" in line for line in told) == 1


def test_greetings_interruptions_and_the_order_of_messages(here: Parts, server: Elsewhere) -> None:
    talk = Talk(here, server.choice, load_persona("default"))
    talk.conversation.greet("Hello, I am back.")
    for _ in range(100):
        talk.conversation.frame(SILENCE)
    talk.ask("What is the capital of France?")
    talk.conversation.greet("Dinner is ready.")
    for _ in range(100):
        talk.conversation.frame(SILENCE)
    talk.ask("And of Italy?")
    messages = server.requests()[-1]["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system"] + ["user", "assistant"] * (len(roles) // 2 - 1) + ["user"]
    assert messages[-2]["content"].endswith("Dinner is ready.") and messages[-1]["content"] == "And of Italy?"
    talk.conversation.close()


def test_it_is_saved_and_goes_on(here: Parts, server: Elsewhere, tmp_path: Path) -> None:
    talk = Talk(here, server.choice, load_persona("default"))
    talk.ask("What is the capital of France?")
    saved: list[int | Exception] = []
    talk.conversation.save(tmp_path, saved.append)
    assert isinstance(saved[0], int) and (tmp_path / FILE).stat().st_mode & 0o077 == 0
    talk.conversation.close()
    kept = load_remote(tmp_path)
    again = Talk(here, server.choice, load_persona("default"), kept)
    turn = again.ask("And of Italy?")
    assert turn.tokens.referenced > 100 > turn.tokens.forwarded
    again.conversation.close()
    (tmp_path / FILE).write_text('[{"role": 1}]')
    with pytest.raises(SavedSessionError):
        load_remote(tmp_path)
    assert load_remote(tmp_path / "none") is None


def test_a_long_past_is_shortened(here: Parts, server: Elsewhere) -> None:
    talk = Talk(here, replace(server.choice, context=400), load_persona("default"))
    for _ in range(8):
        talk.ask("What is the capital of France?")
        for _ in range(60):
            talk.conversation.frame(SILENCE)
    assert any(event.type is EventType.COMPACTED for event in talk.events)
    assert max(request["prompt"] for request in server.requests()[-3:]) < 400
    talk.conversation.close()


@contextmanager
def answering(data: bytes) -> Iterator[LlmChoice]:
    """A server that sends `data` to whoever asks."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client, suppress(OSError):
                    client.recv(65_536)
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65_536):  # a socket closed on unread bytes resets the connection instead
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield LlmChoice(LlmKind.OPENAI, f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "x", timeout=5)
        listener.shutdown(socket.SHUT_RDWR)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "cannot be reached"),
        (b"garbage\r\n\r\n", "cannot be reached"),
        (HEAD, "broke off before its end"),
        (HEAD + b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n', "broke off before its end"),
        (HEAD + b"data: {broken\n\n", "broke off"),
        (HEAD + b'data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        (b'HTTP/1.1 401 No\r\nContent-Length: 29\r\n\r\n{"error":{"message":"no key"}}', "refused with 401"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", "refused with 503: busy"),
    ],
)
def test_a_server_that_fails_is_told_and_survived(data: bytes, sentence: str, here: Parts) -> None:
    with answering(data) as choice:
        talk = Talk(here, choice, load_persona("default"))
        talk.conversation.say_text("Hello?")
        for _ in range(20):
            talk.conversation.frame(SILENCE)
        errors = [event.reason for event in talk.events if event.type is EventType.ERROR]
        assert errors and sentence in (errors[0] or ""), errors
        assert talk.conversation.idle  # and listens again
        talk.conversation.close()


def test_nobody_there_and_addresses_that_are_none(here: Parts, whisper_path: Path, piper_path: Path) -> None:
    for url in ("ftp://x/v1", "127.0.0.1:8000", "http://"):
        with pytest.raises(LlmError, match="base_url"):
            Server(LlmChoice(LlmKind.OPENAI, url))
    with pytest.raises(LlmError, match="CROSSTALK_NO_SUCH_KEY"):
        Server(LlmChoice(LlmKind.OPENAI, key_variable="CROSSTALK_NO_SUCH_KEY"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        choice = LlmChoice(LlmKind.OPENAI, f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        parts = load_parts(ModelPaths(Path("x"), whisper_path, piper_path), AssistantSettings(llm=choice))
        assert parts.remote is not None  # a server that starts later is waited for
        parts.close()


def test_the_stream_is_read_in_any_pieces() -> None:
    event = 'data: {"choices": [{"delta": {"content": "größer 😀"}}]}\r\n\r\n'.encode()
    with answering(HEAD + b": a comment\n\nevent: x\n" + event + b"data: [DONE]\n\n") as choice:
        stream: Stream = Server(choice).stream({}, threading.Event())
        assert list(stream) == ["größer 😀"]
