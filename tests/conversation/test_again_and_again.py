"""The fifth interruption works like the first: what was heard stays, and only what is new is computed."""

from __future__ import annotations

from pathlib import Path

from tests.conversation.talk import Talk
from tests.loaded import loaded

QUESTIONS = (
    "Tell me about the ocean.",
    "Tell me how a rainbow is made.",
    "Tell me about the moon.",
    "Tell me about the ocean.",
    "What do spiders eat?",
    "What is the capital of France?",
)


def test_five_interruptions(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> None:
    parts = loaded(smollm2_path, whisper_path, piper_path)
    talk = Talk(parts)
    conversation = talk.conversation
    for number, question in enumerate(QUESTIONS):
        conversation.say_text(question)
        if number < 5:
            talk.until(lambda: conversation.playing)
            talk.frames(30)
    talk.until(lambda: conversation.idle)
    conversation.deliver()
    *cut, last = (talk.turns[number] for number in range(6))
    for turn, question in zip(cut, QUESTIONS, strict=False):
        assert turn.user_text == question and turn.interrupted
        assert turn.heard_text and turn.assistant_text.startswith(turn.heard_text)
        assert turn.speech_start is not None and turn.speech_end is not None
        assert 0.4 < turn.speech_end - turn.speech_start < 0.9
    assert not last.interrupted and "Paris" in last.heard_text

    # All that was asked and heard, in order, and nothing else.
    decode, template = parts.engine.tokenizer.decode, parts.engine.template
    past = decode(conversation._dialogue.base.ids[len(conversation._dialogue._head) :])
    heard = ((template.user(turn.user_text), turn.heard_text) for turn in (*cut, last))
    wanted = "".join(decode(asked) + text + decode(template.assistant_close()) for asked, text in heard)
    assert past.split() == wanted.split()
    for before, turn in zip([*cut], [*cut[1:], last], strict=True):
        added = len(parts.engine.template.user(turn.user_text))
        tokens = turn.tokens
        # Every id of the turn was computed for it, and none of the past.
        assert tokens.forwarded + tokens.copied + tokens.referenced == before.tokens.context + added
        assert added - 1 <= tokens.forwarded <= added
    conversation.close()
    parts.engine.check()
