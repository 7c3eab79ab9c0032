"""The chat without a screen: typed lines in, lines out; and what it says when there is no sound."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.chat.chat import Chat, Means
from assistant.chat.plain import run_plain
from assistant.personas import PersonaError, load_persona
from tests.loaded import loaded


@pytest.fixture
def typed(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Chat:
    parts = loaded(smollm2_path, whisper_path, piper_path)
    return Chat(parts, load_persona("default"), Means(typed=True, silent=True), None, None)


def test_each_typed_line_gets_its_answer_in_turn(typed: Chat) -> None:
    source = io.StringIO("What is the capital of France?\n\nHow many legs does a spider have?\n")
    out = io.StringIO()
    run_plain(typed, source=source, out=out)
    lines = out.getvalue().splitlines()
    said = [line for line in lines if "forwarded" not in line]
    assert [line.split()[1] for line in said] == ["you", "crosstalk", "you", "crosstalk"]
    assert "Paris" in said[1] and "legs" in said[3]
    assert sum("forwarded" in line for line in lines) == 2
    assert "\033" not in out.getvalue(), "no colours in a pipe"


def test_a_persona_that_is_not_there(typed: Chat) -> None:
    with pytest.raises(PersonaError, match="there is no persona 'nobody'"):
        typed.become("nobody")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--persona", "nobody"], 2, "there is no persona 'nobody'"),
        (["--set", "engine.thread=2"], 2, "did you mean 'engine.threads'"),
    ],
)
def test_wrong_wishes_are_one_line_before_anything_is_loaded(arguments: list[str], code: int, says: str) -> None:
    command = [sys.executable, "-m", "assistant.cli", "chat", "--plain", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == code and says in ended.stderr and ended.stderr.count("\n") == 1
