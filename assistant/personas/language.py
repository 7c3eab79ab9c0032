"""What a language's speakers murmur and shout: one YAML file each in `configs/languages` or the user's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from assistant.folders import config_folder
from assistant.overlap import OverlapRules
from assistant.personas.faults import PersonaError
from assistant.personas.marks import read
from assistant.personas.model import Part, Text
from assistant.personas.sentences import faults_of
from assistant.resources import config_file


class Language(Part):
    """Small words with a meaning for turn-taking."""

    name: Text
    """In English."""
    backchannels: tuple[Text, ...] = ()
    """Heard over the assistant these neither stop it nor are answered; none: the English ones."""
    stop_words: tuple[Text, ...] = ()
    """A first word that stops the assistant at once; none: the English ones."""
    noises: tuple[Text, ...] = ("Mm-hm.",)
    """What the assistant murmurs while it listens."""

    def overlap(self, rules: OverlapRules) -> OverlapRules:
        """`rules` with this language's words."""
        return replace(
            rules,
            backchannels=frozenset(self.backchannels) or rules.backchannels,
            stop_words=frozenset(self.stop_words) or rules.stop_words,
        )


def known_languages() -> list[str]:
    """Codes such as en, in alphabetical order."""
    return sorted({path.stem for folder in _folders() for path in folder.glob("*.yaml")})


def load_language(code: str) -> Language:
    """The language with this code, the user's own file before the shipped one; PersonaError if there is none."""
    path = next((path for folder in _folders() if (path := folder / f"{code}.yaml").is_file()), None)
    if path is None:
        raise PersonaError(f"there is no language '{code}'; there are {', '.join(known_languages())}.")
    document = read(path)
    try:
        return Language.model_validate(document.data)
    except ValidationError as error:
        raise PersonaError(faults_of(error, Language, document)) from error


def _folders() -> tuple[Path, Path]:
    return config_folder() / "languages", config_file("languages")
