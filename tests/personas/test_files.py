"""Persona files: what is wrong with a bad one, in one line; what `extends` makes of two; the schema."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.personas import Persona, PersonaError, known_personas, load_persona
from assistant.personas.files import folders
from assistant.personas.language import known_languages, load_language
from assistant.personas.marks import read
from assistant.personas.schema import schema
from assistant.personas.watch import PersonaFiles
from assistant.resources import config_file
from voices.effects import EFFECTS

Own = Callable[[str, str], Path]
SHIPPED = sorted(path.stem for path in config_file("personas").glob("*.yaml"))
GROUPS = "name, speed, variation, effects"

BAD = [
    ("system: A.\npatiense: 2", ["2: patiense is no field; did you mean 'patience'?"]),
    ("system: A.\npatience: slow", ["2: patience must be a number from 0.5 to 4, not 'slow'."]),
    ("system: A.\n\n\npatience: 9", ["4: patience must be a number from 0.5 to 4, not 9."]),
    ("system: A.\nanswer_tokens: 1.5", ["2: answer_tokens must be a whole number from 1 to 4096, not 1.5."]),
    ("system: A.\nsampling:\n  top_p: 0", ["3: sampling.top_p must be a number above 0 and up to 1, not 0."]),
    ("system: A.\nsampling: {min_p: 1}", ["2: sampling.min_p must be a number from 0 and below 1, not 1."]),
    ("system: A.\nsilence: {say: [Hm], after: 0}", ["2: silence.after must be a number above 0, not 0."]),
    ("system: A.\nsilence: {say: []}", ["2: silence.say must not be empty."]),
    ("system: A.\nsilence: {after: 3}", ["2: silence.say is missing."]),
    ("system: A.\npush_to_talk: maybe", ["2: push_to_talk must be true or false, not 'maybe'."]),
    (
        "system: A.\ninterruptibility: hrad",
        ["2: interruptibility must be easy, normal or hard, not 'hrad'; did you mean 'hard'?"],
    ),
    (
        "system: A.\ninterjections:\n  eagerness: sometimes",
        ["3: interjections.eagerness must be off, rare or eager, not 'sometimes'."],
    ),
    ("system: A.\nvoice: metallic", [f"2: voice must be fields of its own ({GROUPS}), not 'metallic'."]),
    ("system: A.\nvoice:\n  pitch: 2", [f"3: voice.pitch is no field; there are {GROUPS}."]),
    ("system: A.\nvoice:\n  effects: metallic", ["3: voice.effects must be a list, not 'metallic'."]),
    (
        "system: A.\nvoice:\n  effects:\n    - hall\n    - metalic",
        ["5: voice.effects[2] cannot be 'metalic'; did you mean 'metallic'?"],
    ),
    ("system: [A, B]", ["1: system must be text, not a list."]),
    ("system: ''", ["1: system must not be empty."]),
    ("greeting: Hello.", ["1: system is missing."]),
    ("", ["1: system is missing."]),
    ("system: A.\nexamples:\n  - user: Hi", ["3: examples[1].assistant is missing."]),
    ("system: A.\nlanguage: eng", ["2: language must be one of de, en, es, fr, not 'eng'; did you mean 'en'?"]),
    (
        "system: A.\ninterjections:\n  reasons:\n    - {name: x, say: No!}",
        ["4: interjections.reasons[1] never applies; give it hears, after or judged."],
    ),
    (
        "system: A.\ninterjections:\n  reasons:\n  - {name: x, say: A, after: 1}\n  - {name: x, say: A, after: 2}",
        ["2: interjections has two reasons called 'x'; each needs a name of its own."],
    ),
    ('system: A.\ncontext: {command: "date \'"}', ["2: context.command is no command: no closing quotation."]),
    ("system: A.\nextends: defualt", ["2: extends names no persona: 'defualt'; did you mean 'default'?"]),
    ("extends: [a]", ["1: extends must be the name of one persona."]),
    ("extends: bad", ["1: extends goes round in a circle: bad extends bad."]),
    ("system: A.\nsystem: B.", ["2: system stands in line 1 already."]),
    ("- a\n- b", ["1: must consist of fields, such as `system: You are a sailor.`"]),
    (
        "system: Note: this breaks",
        ["1: is not valid YAML: mapping values are not allowed here (text with a colon in it needs quotes)."],
    ),
    ("a: &a [*a]", ["1: is not valid YAML: a value contains itself."]),
    (
        "patience: slow\nsystem: A.\nspeed: 2\nvoice: {speed: fast}",
        [
            "1: patience must be a number from 0.5 to 4, not 'slow'.",
            "3: speed is no field; did you mean 'voice.speed'?",
            "4: voice.speed must be a number from 0.5 to 2, not 'fast'.",
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=[text[:40] for text, _ in BAD])
def test_every_mistake_is_one_line_with_its_place(own: Own, text: str, expected: list[str]) -> None:
    path = own("bad", text)
    with pytest.raises(PersonaError) as caught:
        load_persona("bad")
    lines = [str(fault) for fault in caught.value.faults]
    assert lines == [f"{path}:{line}" for line in expected]
    assert "\n" not in str(caught.value) and lines[0] in str(caught.value)


def test_files_that_are_none(own: Own, tmp_path: Path) -> None:
    path = own("bad", "")
    path.write_bytes(b"system: A.\ngreeting: \xff\xfe")
    with pytest.raises(PersonaError, match="bad.yaml:2: is not UTF-8 text"):
        load_persona("bad")
    path.write_text("#" * 300_000)
    with pytest.raises(PersonaError, match="larger than 256 kB"):
        load_persona("bad")
    path.write_text("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8)
    ))  # fmt: skip
    with pytest.raises(PersonaError, match="too many values"):
        load_persona("bad")
    path.unlink()
    path.mkdir()
    with pytest.raises(PersonaError, match="there is no persona 'bad'; did you mean"):
        load_persona("bad")
    with pytest.raises(PersonaError, match="there is no persona 'defualt'; did you mean 'default'"):
        load_persona("defualt")
    with pytest.raises(PersonaError, match="there is no persona '../default'"):
        load_persona("../default")
    with pytest.raises(PersonaError, match="there is no persona file nowhere.yaml"):
        load_persona("nowhere.yaml")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(list(Persona.model_fields)) | st.text(max_size=6), inner, max_size=4),
        max_leaves=8,
    )
)
def test_whatever_a_file_holds_it_is_a_persona_or_an_error_of_one_line(tmp_path: Path, content: object) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8", errors="surrogateescape")
    try:
        assert isinstance(load_persona(str(path)), Persona)
    except PersonaError as error:
        assert all("\n" not in str(fault) and fault.file == path for fault in error.faults)


def test_words_stay_words(own: Own) -> None:
    reasons = "[{name: 1, say: No, hears: [no, 1066, on]}]"
    own("words", f"system: 12:30\ninterjections:\n  eagerness: off\n  reasons: {reasons}\n")
    persona = load_persona("words")
    assert persona.system == "12:30" and persona.interjections.eagerness.value == "off"
    assert persona.interjections.reasons[0].hears == ("no", "1066", "on")


def test_extends_joins_groups_and_replaces_the_rest(own: Own) -> None:
    examples = "[{user: a, assistant: b}]"
    own("base", f"system: Base.\nvoice: {{speed: 1.5, effects: [hall]}}\nexamples: {examples}\ngreeting: Hi.")
    own("child", "extends: base\nvoice: {variation: 0.5}\nexamples: []\ngreeting:\n")
    own("grandchild", "extends: child\nvoice: {effects: [metallic, hall]}\n")
    own("default", "extends: default\ngreeting: My own.\n")
    child, grandchild = load_persona("child"), load_persona("grandchild")
    assert (child.system, child.voice.speed, child.voice.variation) == ("Base.", 1.5, 0.5)
    assert child.examples == () and child.greeting == "" and child.name == "child"
    assert grandchild.voice.effects == ("metallic", "hall") and grandchild.voice.speed == 1.5
    assert load_persona("default").greeting == "My own." and load_persona("default").examples


def test_a_fault_is_reported_where_it_stands(own: Own) -> None:
    base = own("base", "system: Base.\npatience: slow\n")
    child = own("child", "extends: base\nvoice: {speed: fast}\n")
    with pytest.raises(PersonaError) as caught:
        load_persona("child")
    places = {(fault.file, fault.line, fault.field) for fault in caught.value.faults}
    assert places == {(base, 2, "patience"), (child, 2, "voice.speed")}


def test_circles_are_refused(own: Own) -> None:
    own("a", "extends: b")
    own("b", "extends: c")
    own("c", "system: C.\nextends: a")
    with pytest.raises(PersonaError, match="c.yaml:2: extends goes round in a circle: a extends b extends c"):
        load_persona("a")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_persona_fits_the_schema_and_loads(name: str) -> None:
    jsonschema.validate(read(config_file("personas", f"{name}.yaml")).data, schema())
    persona = load_persona(name)
    assert persona.description and len(persona.description) < 75 and 2 <= len(persona.examples) <= 4
    assert len(persona.system) < 160


def test_there_are_seven_and_the_schema_says_what_the_loader_says() -> None:
    assert len(SHIPPED) >= 7 and set(SHIPPED) <= set(known_personas())
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$defs"]["VoiceChoice"]["properties"]["effects"]["items"]["enum"] == list(EFFECTS)
    assert all(field.get("description") for field in schema()["properties"].values() if "$ref" not in str(field))
    for text, _ in BAD:
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        # What a schema cannot say: circles, two reasons of one name, reasons without a trigger, keys that stand twice.
        if any(word in text for word in ("extends:", "system: B", "name: x", "&a", 'date', "system: ''")):
            continue
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data, schema())


def test_languages(own: Own) -> None:
    assert known_languages() == ["de", "en", "es", "fr"]
    for code in known_languages():
        language = load_language(code)
        assert language.noises and (code == "en" or "okay" in language.backchannels)
    with pytest.raises(PersonaError, match="there is no language 'xx'"):
        load_language("xx")


def test_a_changed_file_is_noticed_once(own: Own) -> None:
    base = own("base", "system: Base.")
    child = own("child", "extends: base")
    watched = PersonaFiles("child")
    assert watched.poll() is None

    def write(path: Path, text: str, when: int) -> None:
        path.write_text(text)
        os.utime(path, ns=(when, when))

    write(base, "system: New.", 10**18)
    persona = watched.poll()
    assert persona is not None and persona.system == "New." and watched.poll() is None
    write(child, "extends: base\npatience: slow", 2 * 10**18)
    with pytest.raises(PersonaError, match="patience"):
        watched.poll()
    assert watched.poll() is None  # said once; the one before goes on
    write(child, "extends: base\npatience: 2", 3 * 10**18)
    persona = watched.poll()
    assert persona is not None and persona.patience == 2
    child.unlink()
    with pytest.raises(PersonaError, match="there is no persona 'child'"):
        watched.poll()


def test_folders_are_the_users_first(own: Own) -> None:
    assert folders()[1] == config_file("personas") and json.dumps(schema())
