"""Settings: what is typed arrives with its type, and what is wrong is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from assistant.settings import SettingsError, flat, merged, parse_overrides, plain, read_settings


class Mode(StrEnum):
    OFF = "off"
    EAGER = "eager"


@dataclass(frozen=True)
class Ears:
    low: float = 0.3
    high: float = 0.5
    mode: Mode = Mode.EAGER
    languages: tuple[str, ...] = ("en",)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise SettingsError("low must not be above high.")


@dataclass(frozen=True)
class Tree:
    name: str = "joe"
    device: str | None = None
    threads: int = 1
    loud: bool = False
    ears: Ears = field(default_factory=Ears)


def change(*overrides: str) -> Tree:
    return merged(Tree(), parse_overrides(overrides), "--set")


def test_values_arrive_with_their_type() -> None:
    assert change("threads=2", "loud=yes", "name=12", "device=null") == Tree(threads=2, loud=True, name="12")
    assert change("device=hw:1,0").device == "hw:1,0"
    assert change("ears.mode=off").ears.mode is Mode.OFF  # which YAML alone reads as false
    assert change("ears.languages=[en, de]").ears.languages == ("en", "de")
    assert change("name=a=b").name == "a=b"
    assert change("threads=2", "threads=3").threads == 3


def test_values_that_must_fit_each_other_change_together() -> None:
    assert change("ears.low=0.7", "ears.high=0.9").ears == Ears(0.7, 0.9)
    with pytest.raises(SettingsError, match="--set: low must not be above high"):
        change("ears.low=0.7")


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("thread=2", "'thread' is no setting; did you mean 'threads'"),
        ("ears.lo=2", "'ears.lo' is no setting; did you mean 'ears.low'"),
        ("zzz=2", "there are: name, device, threads, loud, ears"),
        ("threads=two", "'threads' cannot be 'two'"),
        ("threads=1.5", "'threads' cannot be '1.5'"),
        ("ears.mode=sometimes", "'off' or 'eager'"),
        ("ears=3", "'ears' holds settings of its own; set one of them, e.g. 'ears.low'"),
        ("threads", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("ears..low=3", "KEY=VALUE"),
        ("threads.x=3", "'threads' cannot be"),
    ],
)
def test_a_wrong_setting_is_named(override: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        change(override)
    assert complaint in str(caught.value)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    assert read_settings(file) == {}
    file.write_text("# nothing yet\n")
    assert read_settings(file) == {}
    file.write_text("threads: 2\nears: {mode: eager, languages: [fr]}\n")
    assert merged(Tree(), read_settings(file), str(file)) == Tree(threads=2, ears=Ears(languages=("fr",)))
    file.write_text("threads: [")
    with pytest.raises(SettingsError, match="not valid YAML"):
        read_settings(file)
    file.write_text("- threads")
    with pytest.raises(SettingsError, match="should be a mapping"):
        read_settings(file)
    with pytest.raises(SettingsError, match=r"settings.yaml: 'ears.low' cannot be 'x'"):
        merged(Tree(), {"ears": {"low": "x"}}, str(file))


def test_the_tree_as_plain_data() -> None:
    assert flat(plain(Tree()))["ears.languages"] == ["en"]
    assert flat(plain(Tree()))["ears.mode"] == "eager"
