"""A multilingual model chooses among the languages it may hear (case 7)."""

from __future__ import annotations

import pytest

from assistant.audio.constants import samples
from assistant.ears.errors import EarsSettingsError
from assistant.ears.hypothesis import Mode
from assistant.ears.transcriber import AsrSettings, Transcriber
from tests.audio.speech import in_room, pause, trimmed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whisper_base_path():
    from assistant.cli.console import download_progress
    from assistant.models import Store, load_catalogue

    return Store().pull(load_catalogue().find("whisper-base"), download_progress())


@pytest.fixture(scope="module")
def two_languages(whisper_base_path):
    return Transcriber.load(whisper_base_path, AsrSettings(languages=("en", "de")))


@pytest.mark.parametrize(
    ("text", "voice", "wanted"),
    [
        ("hello", "en-us", {"en"}),
        ("What is the capital of France?", "en-us", {"en"}),
        ("Guten Morgen, wie geht es Ihnen?", "de", {"de"}),
        ("bonjour", "fr", {"en", "de"}),
        ("konnichiwa", "ja", {"en", "de"}),
    ],
)
@pytest.mark.parametrize("mode", [Mode.PARTIAL, Mode.FINAL])
def test_7_one_of_the_allowed_languages(two_languages, speech, text, voice, wanted, mode):
    said = in_room(pause(300), trimmed(speech.espeak(text, voice)), pause(60))
    assert two_languages.transcribe(said, mode).language in wanted


def test_7_a_hello_of_800_ms(two_languages, speech):
    said = in_room(trimmed(speech.espeak("hello", words_per_minute=140)), pause(1000))[: samples(800)]
    heard = two_languages.transcribe(said)
    assert heard.language == "en"
    assert "hello" in heard.text.lower()


def test_one_allowed_language_is_not_asked_for(whisper_base_path, speech):
    german = Transcriber.load(whisper_base_path, AsrSettings(languages=("de",)))
    heard = german.transcribe(in_room(pause(300), speech.espeak("Guten Morgen, wie geht es Ihnen?", "de")))
    assert heard.language == "de"
    assert "Guten Morgen" in heard.text


def test_a_language_nobody_knows_is_refused(whisper_base_path):
    with pytest.raises(EarsSettingsError, match="does not know this language"):
        Transcriber.load(whisper_base_path, AsrSettings(languages=("en", "tlh")))
