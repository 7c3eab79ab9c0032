"""What personas cost in the engine: shared prompts, notes that last one turn, thoughts. Typed, without sound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from assistant.conversation.dialogue import Dialogue, Draft
from assistant.conversation.heads import Heads
from assistant.conversation.thoughts import Thoughts
from assistant.conversation.turns import Prompt
from assistant.mouth import SilentMouth
from assistant.personas import ContextChoice, Example, Persona, load_persona
from assistant.personas.attempt import attempts
from assistant.personas.context import Context, spoken_time
from engine import Engine, EngineSettings
from engine.text.template import ChatFragments


@pytest.fixture(scope="module")
def engine(smollm2_path: Path) -> Iterator[Engine]:
    made = Engine.load(smollm2_path, EngineSettings(validate=True))
    yield made
    made.close()


def begin(engine: Engine, persona: Persona, heads: Heads | None = None) -> Dialogue:
    return Dialogue(engine, persona, SilentMouth(), lambda: 0.0, heads=heads)


def answered(dialogue: Dialogue, text: str, opening: str = "") -> tuple[Draft, str]:
    """A draft of the whole answer."""
    draft = dialogue.draft(Prompt(text, opening))
    while not (step := draft.reply.step()).finished:
        pass
    return draft, step.text


def said(engine: Engine, dialogue: Dialogue) -> str:
    return engine.tokenizer.decode(dialogue.base.ids)


# --- prompts ------------------------------------------------------------------------------------------------------


def test_a_known_prompt_is_computed_once_for_all_conversations(engine: Engine) -> None:
    default, quiz = load_persona("default"), load_persona("quiz")
    engine.drop_cache()
    heads = Heads(engine)
    first = begin(engine, default, heads)
    alone = heads.forwarded
    assert alone == len(first._head)
    others = [begin(engine, default, heads) for _ in range(3)]
    assert heads.forwarded == alone
    for dialogue in others:
        dialogue.close()

    for text in ("What is the capital of France?", "And of Spain?"):
        draft, answer = answered(first, text)
        first.settle(draft, len(answer))
    past = list(first.base.ids[len(first._head) :])
    first.switch(quiz, SilentMouth())  # new here: its own prompt and the turns behind it are computed
    both = heads.forwarded
    assert alone < both <= alone + len(first._head)
    assert list(first.base.ids) == [*first._head, *past]
    first.switch(default, SilentMouth())  # known: nothing is
    assert first.base.stats.forwarded <= 1
    first.switch(quiz, SilentMouth())
    assert first.base.stats.forwarded <= 1 and heads.forwarded == both
    first.close()
    heads.close()


def test_heads_are_bounded_and_survive_eviction(engine: Engine) -> None:
    heads = Heads(engine, most=2)
    for number in range(5):
        begin(engine, Persona(system=f"You are number {number}."), heads).close()
    assert len(heads._known) == 2
    engine.drop_cache()
    known = heads.forwarded
    begin(engine, Persona(system="You are number 4."), heads).close()
    assert heads.forwarded == known
    heads.close()
    assert not heads._known


# --- notes --------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 5, 4, 12, 5)


def test_the_time_is_told_for_one_turn_and_leaves_no_trace(engine: Engine) -> None:
    persona = load_persona("concierge")
    heads = Heads(engine)
    dialogue, plain = begin(engine, persona, heads), begin(engine, load_persona("concierge"), heads)
    for one, now in ((dialogue, NOON), (plain, None)):
        one._context = Context(persona.context if now else ContextChoice(), "en", lambda: NOON)
    dialogue.listen("What time")  # the note goes in with the first words, and stays for the rest of them
    assert "(It is 12:05 PM on Monday, May 4, 2026.) What time" in engine.tokenizer.decode(dialogue._tail.ids)
    dialogue._context._now = lambda: datetime(2027, 1, 1)
    draft, answer = answered(dialogue, "What time is it?")
    assert "12:05" in answer or "Monday" in answer, answer
    assert draft.tokens.after_endpoint <= 10, "the note was computed while the user spoke"
    before = list(dialogue.base.ids)
    tokens = dialogue.settle(draft, len(answer))
    kept = said(engine, dialogue)
    assert "12:05 PM on Monday" not in kept.removeprefix(engine.tokenizer.decode(before)).replace(answer, "")
    assert list(dialogue.base.ids)[: len(before)] == before
    words = engine.template.user("What time is it?") + engine.tokenizer.encode(answer)
    words += engine.template.assistant_close()
    assert len(dialogue.base.ids) - len(before) <= len(words) + 1
    assert 0 < tokens.rewritten <= len(words) and tokens.discarded > 0 and tokens.context == len(dialogue.base.ids)

    # Without a note the same turn costs no second computation.
    draft, answer = answered(plain, "Thank you.")
    assert plain.settle(draft, len(answer)).rewritten == 0
    # The next turn has the next note, and what is behind it is found: only what is new is computed.
    draft, answer = answered(dialogue, "What year is it?")
    assert "2027" in engine.tokenizer.decode(draft.reply.session.ids[len(dialogue.base.ids) :])
    assert draft.tokens.referenced + draft.tokens.copied >= len(dialogue.base.ids)
    dialogue.drop(draft)
    for one in (dialogue, plain):
        one.close()
    heads.close()


def test_a_cut_answer_is_kept_to_the_word_beside_a_note(engine: Engine) -> None:
    persona = Persona(system="You are brief.", context=ContextChoice(time=True))
    dialogue = begin(engine, persona)
    draft, answer = answered(dialogue, "Tell me about Rome.")
    heard = answer.index(" ", 12)
    dialogue.settle(draft, heard)
    kept = said(engine, dialogue)
    assert answer[:heard] in kept and answer[: heard + 8] not in kept and "(It is" not in kept
    dialogue.close()


def test_commands_are_told_but_never_waited_for_long(tmp_path: Path) -> None:
    told = Context(ContextChoice(command=("printf", "21 degrees\\nsecret"), label="Room"))
    told._running = None
    assert told.note() == "(Room: 21 degrees.)"
    assert Context(ContextChoice(command=("no-such-program",))).note() == ""
    assert Context(ContextChoice(command=("false",))).note() == ""
    slow = Context(ContextChoice(command=("sleep", "5")))
    assert slow.note() == ""
    slow._said, slow._said_at = "18 degrees", float("inf")
    assert slow.note() == "(18 degrees.)", "the last answer stands in for a slow one"
    assert ContextChoice.model_validate({"command": "echo 'two words'"}).command == ("echo", "two words")


def test_the_time_in_the_persona_s_language() -> None:
    assert spoken_time(NOON, "en") == "It is 12:05 PM on Monday, May 4, 2026"
    assert spoken_time(NOON, "de") == "Montag, 4. Mai 2026, 12:05"


# --- thoughts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begun", "tokens", "expected"),
    [
        (False, ["<think>", "Hm", ".", "</think>", "\n\n", "Yes", "."], ["", "", "", "", "", "Yes", "."]),
        (True, ["Hm", "</think>", "Yes"], ["", "", "Yes"]),
        (True, ["Hm </th", "ink> Yes", "!"], ["", "Yes", "!"]),
        (False, ["<th", "ink>a</think>B"], ["", "B"]),
        (False, ["Yes", " <think>"], ["Yes", " <think>"]),
        (False, ["<", "3", " you"], ["", "<3", " you"]),
        (True, ["never", " ends"], ["", ""]),
    ],
)
def test_thoughts_are_not_said(begun: bool, tokens: list[str], expected: list[str]) -> None:
    thoughts = Thoughts(begun=begun)
    assert [thoughts.push(token) for token in tokens] == expected


def test_an_answer_that_only_looked_like_a_thought_is_said_in_the_end() -> None:
    thoughts = Thoughts(begun=False)
    assert thoughts.push("<thi") == "" and thoughts.finish() == "<thi"


def test_thoughts_do_not_stay_in_the_past(engine: Engine) -> None:
    """The model here has no thoughts of its own: a template that opens one and examples that close it make it think."""
    example = Example(user="What is two and two?", assistant="Two and two.</think>Four.")
    persona = Persona(system="Think first.", examples=(example, example), thinking=True, answer_tokens=60)
    dialogue = begin(engine, persona)
    source = engine.template.source.replace(
        "'<|im_start|>assistant\n'", "'<|im_start|>assistant\n' + ('<think>' if enable_thinking else '')"
    )
    dialogue._template = ChatFragments(engine.tokenizer, source, thinking=True)
    assert dialogue._template.text.thinking == "<think>"
    head = len(dialogue._head)
    draft, answer = answered(dialogue, "What is two and three?")
    assert draft.reply.hidden > 3 and answer and "think" not in answer
    tokens = dialogue.settle(draft, len(answer))
    assert tokens.rewritten > 0 and "think" not in engine.tokenizer.decode(dialogue.base.ids[head:])
    assert answer.strip() in engine.tokenizer.decode(dialogue.base.ids[head:])
    dialogue.close()


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "wanted", "reason"),
    [
        ("default", "What is the capital of France?", "Paris", ""),
        ("lab", "What is the capital of France?", "Paris", ""),
        ("lab", "I will press the red button now.", "carpet", "danger"),
        ("quiz", "Well, I would say it is Sydney.", "No, it is Canberra! Next question.", "wrong capital"),
        ("quiz", "It is Jupiter, not Saturn.", "Jupiter is right!", "right planet"),
        ("tutor", "I am agree with you.", "we say, I agree", "agree"),
        ("dispatcher", "Unit nine, there is a fire at the school.", "over", ""),
        ("concierge", "What is the capital of France?", "Paris", ""),
        ("listener", "I went to the doctor yesterday.", "", ""),
    ],
)
def test_it_answers_in_its_own_way(engine: Engine, name: str, text: str, wanted: str, reason: str) -> None:
    persona = load_persona(name)
    found = [a for a in attempts(engine, persona, SilentMouth(), [text]) if a.said]
    (attempt,) = found
    assert wanted in attempt.answer and attempt.cut_in == reason
    assert 0 < len(attempt.answer.split()) < 45


def test_a_greeting_is_said_whole(engine: Engine) -> None:
    persona = load_persona("dispatcher")
    quiz = load_persona("quiz")
    assert persona.answer_sentences == 1
    for who in (persona, quiz):
        greeting = next(iter(attempts(engine, who, SilentMouth(), ["Hello."])))
        assert greeting.answer == who.greeting
