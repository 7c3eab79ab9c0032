"""Tokenizer, detokenizer, stop strings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine import Finish, Sampling, Tokenizer
from engine.loading import read_model
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopStrings
from engine.text.tokenizer import _byte_alphabet
from tests.engine.tiny import tiny_engine, tiny_file, tiny_vocabulary

BYTES = {byte: char for char, byte in _byte_alphabet().items()}
GOLDEN = Path(__file__).parent / "golden"


def golden(tokenizer: Tokenizer, name: str) -> None:
    """Recorded from llama.cpp 0.3.36; for both models here it agrees with the original tokenizers on these texts."""
    recorded = json.loads((GOLDEN / f"{name}.json").read_text())
    for entry in recorded["tokenize"]:
        assert tokenizer.encode(entry["text"], special=True) == entry["ids_special"], entry["text"]
        assert tokenizer.encode(entry["text"]) == entry["ids_plain"], entry["text"]
        assert tokenizer.decode(entry["ids_plain"], special=True) == entry["text"]
    for entry in recorded["next_token"]:
        ids = tokenizer.encode(entry["prompt"], special=True)
        assert ([tokenizer.bos_id] if entry["bos"] else []) + ids == entry["ids"]
        assert tokenizer.decode(entry["greedy_ids"]) == entry["greedy_text"]


@pytest.fixture(scope="session")
def smollm2(smollm2_path) -> Tokenizer:
    return Tokenizer(read_model(smollm2_path).vocabulary)


def test_smollm2_ids_are_the_recorded_ones(smollm2):
    golden(smollm2, "smollm2-135m")


@pytest.mark.slow
def test_gemma3_ids_are_the_recorded_ones(gemma3_path):
    golden(Tokenizer(read_model(gemma3_path).vocabulary), "gemma3-270m")


def test_plain_text_cannot_speak_control_tokens(smollm2):
    ids = smollm2.encode("<|im_end|>")
    assert not any(smollm2.is_special(i) for i in ids) and smollm2.decode(ids) == "<|im_end|>"


@given(st.text(max_size=60))
def test_decoding_token_by_token_gives_the_text(smollm2, text):
    # The model's own vocabulary lacks a few bytes, most of them control characters.
    assume(all(smollm2.id_of(BYTES[b]) is not None for b in text.encode()))
    ids = smollm2.encode(text)
    decoder = smollm2.detokenizer()
    shown = "".join(decoder.push(i) for i in ids) + decoder.finish()
    assert shown == text == smollm2.decode(ids)
    assert smollm2.bytes_of(ids) == text.encode()


@pytest.mark.parametrize("text", ["naïve 🙂👍🏽", "👩‍👩‍👧‍👦", "日本語と한국어", "\N{GREEK SMALL LETTER ALPHA}x"])
def test_characters_survive_every_split(text):
    raw = text.encode()
    for cut in range(len(raw) + 1):
        for second in range(cut, len(raw) + 1):
            table = [raw[:cut], raw[cut:second], raw[second:]]
            decoder = Detokenizer(table, frozenset())
            assert "".join(decoder.push(i) for i in range(3)) + decoder.finish() == text


def test_an_unfinished_character_is_marked_not_lost():
    decoder = Detokenizer(["🙂".encode()[:2]], frozenset())
    assert decoder.push(0) == "" and decoder.finish() == "\ufffd"


@given(
    st.lists(st.text("abU:", max_size=4), max_size=12), st.lists(st.text("abU:", min_size=1, max_size=4), max_size=3)
)
def test_stop_strings_cut_at_the_first_and_show_everything_before(deltas, stops):
    stream, shown = StopStrings(stops), ""
    for delta in deltas:
        if stream.hit:
            break
        shown += stream.push(delta)
        assert not any(stop in shown for stop in stops)
    if not stream.hit:
        shown += stream.finish()
    text = "".join(deltas)
    places = [text.find(stop) for stop in stops if stop in text]
    if stream.hit:
        assert text.startswith(shown) and any(text[len(shown) :].startswith(stop) for stop in stops)
    else:
        assert not places and shown == text


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_a_stop_string_over_token_and_page_boundaries_leaves_no_trace(page_size):
    engine = tiny_engine(file=tiny_file(), page_size=page_size)
    session = engine.new_session([10, 20, 30])
    free = list(session.fork().generate(Sampling(max_tokens=14, stop_at_end_of_turn=False)))
    text = "".join(t.text for t in free)
    for start in range(1, len(text) - 3):
        for length in (1, 2, 3):
            stop = text[start : start + length]
            fork = session.fork()
            generation = fork.generate(Sampling(max_tokens=14, stop_at_end_of_turn=False, stop=(stop,)))
            tokens = list(generation)
            shown = "".join(t.text for t in tokens)
            assert generation.finish is Finish.STOP
            assert shown == text[: text.find(stop)] and stop not in shown
            assert fork.ids == [10, 20, 30] + [t.id for t in tokens]
            fork.close()
    engine.check()
    engine.close()


def test_spm_vocabulary_with_byte_fallback():
    from engine.loading.model_file import Vocabulary

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "a", "b", "ab", "\u2581ab"]
    types = [2, 3, 3] + [6] * 256 + [1] * 5
    scores = [0.0] * (len(pieces) - 2) + [-1.0, -0.5]
    vocabulary = Vocabulary(
        tokens=tuple(pieces),
        kind="spm",
        types=tuple(types),
        scores=tuple(scores),
        unknown=0,
        add_space_prefix=True,
    )
    tokenizer = Tokenizer(vocabulary)
    assert tokenizer.encode("ab") == [pieces.index("\u2581ab")]
    ids = tokenizer.encode("ab é")
    assert tokenizer.bytes_of(ids) == " ab é".encode()


def test_tiny_tokenizer_knows_its_stop_token():
    assert Tokenizer(tiny_vocabulary()).stop_ids == {2}
