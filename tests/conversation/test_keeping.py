"""A conversation that is saved and goes on later: nothing is computed again, and no damage passes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from assistant.audio.constants import FRAME
from assistant.build import Parts, converse
from assistant.conversation.conversation import Conversation
from assistant.conversation.keeping import NOTES, load_kept
from assistant.conversation.workers import InlineWorkers
from assistant.personas import Persona, load_persona
from assistant.replay import VirtualClock
from engine import SavedSessionError
from tests.loaded import loaded

SILENCE = np.zeros(FRAME, np.float32)


@pytest.fixture
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    return loaded(smollm2_path, whisper_path, piper_path)


def begin(parts: Parts, persona: Persona, folder: Path | None = None) -> Conversation:
    kept = load_kept(parts.engine, folder) if folder else None
    return converse(parts, persona, InlineWorkers(), VirtualClock().now, silent=True, kept=kept)


def ask(conversation: Conversation, text: str) -> None:
    conversation.say_text(text)
    for _ in range(200):
        conversation.frame(SILENCE)
        if conversation.idle:
            break
    conversation.deliver()
    assert conversation.idle


def test_it_goes_on_where_it_was_and_forwards_only_new_tokens(parts: Parts, tmp_path: Path) -> None:
    persona = load_persona("default")
    first = begin(parts, persona)
    ask(first, "What is the capital of France?")
    saved: list[int | Exception] = []
    first.save(tmp_path, saved.append)
    past = list(first._dialogue.base.ids)
    first.close()
    assert saved == [len(past)]
    parts.engine.drop_cache()  # as in a new process: nothing of it is left in the pages

    rows = parts.engine.stats.rows
    second = begin(parts, persona, tmp_path)
    assert list(second._dialogue.base.ids) == past
    assert parts.engine.stats.rows - rows <= 1  # the last row, to see that the numbers are those of this model
    rows = parts.engine.stats.rows
    ask(second, "And of Italy?")
    new = len(second._dialogue.base.ids) - len(past)
    assert parts.engine.stats.rows - rows <= new + 20  # decoded tokens beyond the answer's last sentence among them
    second.save(tmp_path, saved.append)
    assert saved[-1] == len(past) + new
    assert len(list(tmp_path.glob("*.session"))) == 1 and not list(tmp_path.glob("*.new"))
    second.close()


def test_another_persona_keeps_the_turns(parts: Parts, tmp_path: Path) -> None:
    first = begin(parts, load_persona("default"))
    ask(first, "What is the capital of France?")
    head = len(first._dialogue._head)
    past = list(first._dialogue.base.ids[head:])
    first.save(tmp_path, lambda tokens: None)
    first.close()
    other = begin(parts, Persona(name="sailor", system="You are an old sailor."), tmp_path)
    dialogue = other._dialogue
    assert list(dialogue.base.ids) == dialogue._head + past
    assert "sailor" in parts.engine.tokenizer.decode(dialogue._head)
    other.close()


def test_damage_is_refused_and_a_failed_save_leaves_the_old_one(parts: Parts, tmp_path: Path) -> None:
    assert load_kept(parts.engine, tmp_path / "nothing") is None
    first = begin(parts, load_persona("default"))
    folder = tmp_path / "state"
    saved: list[int | Exception] = []
    first.save(folder, saved.append)
    whole = (folder / NOTES).read_text()
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    first.save(blocked / "state", saved.append)
    assert isinstance(saved[-1], SavedSessionError)
    first.close()
    notes = json.loads(whole)
    for broken in ("", "[]", "{}", "null", whole[:-4], *(json.dumps(notes | change) for change in (
        {"format": 7}, {"head": 0}, {"head": 10**6}, {"tokens": 1}, {"turns": "x"}, {"session": "../../etc/passwd"},
        {"session": 5}, {"head": "many"},
    ))):  # fmt: skip
        (folder / NOTES).write_text(broken)
        with pytest.raises(SavedSessionError):
            load_kept(parts.engine, folder)
    (folder / NOTES).write_text(whole)
    kept = load_kept(parts.engine, folder)
    assert kept is not None
    kept.session.close()
    (folder / notes["session"]).write_bytes(b"short")
    with pytest.raises(SavedSessionError):
        load_kept(parts.engine, folder)
