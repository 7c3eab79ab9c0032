"""The recogniser: fitted windows, safeguards, prefixes, hot words, languages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from assistant.audio import noise
from assistant.bench.asr_bench import find_clips, measure
from assistant.ears.errors import EarsModelError, EarsSettingsError
from assistant.ears.hypothesis import Mode
from assistant.ears.stabiliser import bare
from assistant.ears.transcriber import AsrSettings, Transcriber
from tests.audio.speech import in_room, pause, prompt_text, recording, word_errors


def bares(text: str) -> list[str]:
    return [word for word in map(bare, text.split()) if word]


@pytest.mark.parametrize("mode", Mode)
def test_a_sentence(transcriber, speech, mode):
    heard = transcriber.transcribe(speech.user("What is the capital of France?"), mode)
    assert bares(heard.text) == "what is the capital of france".split()
    assert not heard.looped
    assert heard.no_speech_prob < 0.5
    assert heard.mode is mode
    assert heard.words == tuple(heard.text.split())


PROMPTS = ["agent-alreadyon", "agent-loginok", "all-circuits-busy-now", "auth-thankyou", "cannot-complete-as-dialed"]


@pytest.mark.parametrize("name", PROMPTS)
def test_a_person(transcriber, name):
    heard = transcriber.transcribe(in_room(pause(300), recording(name), pause(60)))
    wanted = bares(prompt_text(name))
    assert word_errors(wanted, bares(heard.text)) <= 0.1 * len(wanted)


@pytest.mark.parametrize(
    ("seconds", "mode", "window"),
    [
        (0.5, Mode.PARTIAL, 6.0),
        (5.0, Mode.PARTIAL, 7.0),
        (0.5, Mode.FINAL, 10.0),
        (9.0, Mode.FINAL, 11.0),
        (29.5, Mode.FINAL, 30.0),
        (0.5, Mode.FULL, 30.0),
    ],
)
def test_windows(transcriber, seconds, mode, window):
    assert transcriber.window(seconds, mode) == window


def test_words_known_already_come_back_and_are_gone_on_from(transcriber, speech):
    said = speech.user("Could you tell me what the capital of France is?")
    heard = transcriber.transcribe(said, Mode.PARTIAL, ("Could", "you", "tell"))
    assert bares(heard.text) == "could you tell me what the capital of france is".split()
    assert heard.avg_logprob > -1


def test_a_wrong_prefix_is_survived(transcriber, speech):
    said = speech.user("Could you tell me what the capital of France is?")
    heard = transcriber.transcribe(said, Mode.PARTIAL, tuple("no no no no no no no no no".split()))
    assert "capital of France" in heard.text
    assert heard.redone


@pytest.mark.parametrize("count", [0, 1, 159, 160, 161, 16_001])
def test_any_length_is_taken(transcriber, count):
    for mode in (Mode.PARTIAL, Mode.FINAL):
        heard = transcriber.transcribe(np.zeros(count, np.float32), mode)
        assert heard.seconds == count / 16_000


def test_more_than_the_window_is_a_mistake_of_the_caller(transcriber):
    with pytest.raises(ValueError, match="30 s"):
        transcriber.transcribe(np.zeros(16_000 * 31, np.float32))


def test_the_same_sound_gives_the_same_text(transcriber, speech):
    said = speech.user("Please tell me a story about the sea.")
    assert transcriber.transcribe(said) == transcriber.transcribe(said)


def test_tokens_are_bounded_by_the_speech(transcriber):
    """Noise in a short window is where repetition loops come from: each decode must stay short."""
    for seed in range(3):
        burst = noise.white(0.6, -20, seed) + noise.keyboard(0.6, -10, seed)
        heard = transcriber.transcribe(burst, Mode.PARTIAL)
        assert len(transcriber._vocabulary.encode(heard.text)) <= 0.6 * 7 + 12


def test_a_lost_end_is_noticed(transcriber):
    """16 s of speech with a pause, in a window of 18 s: Whisper stops in the pause."""
    said = recording("codec2/ve9qrp")[int(35.1 * 16_000) : int(51.3 * 16_000)]
    heard = transcriber.transcribe(said, Mode.FINAL)
    assert heard.redone
    assert heard.text.split()[-3:] == ["I'm", "using", "a"]


@pytest.fixture(scope="module")
def hot(whisper_path):
    return Transcriber.load(whisper_path, AsrSettings(hot_words=("Crosstalk", "Ouagadougou")))


def test_hot_words_help(hot, transcriber, speech):
    said = speech.user("Is Crosstalk running?")
    assert "Crosstalk" in hot.transcribe(said).text
    assert "Crosstalk" not in transcriber.transcribe(said).text


def test_hot_words_do_not_disturb_a_sentence(hot, speech):
    heard = hot.transcribe(speech.user("What is the capital of France?"))
    assert bares(heard.text) == "what is the capital of france".split()


def test_what_is_no_model_is_said(tmp_path):
    with pytest.raises(EarsModelError, match="model.bin is missing"):
        Transcriber.load(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"nothing")
    with pytest.raises(EarsModelError, match="cannot be loaded"):
        Transcriber.load(tmp_path)


def test_an_english_model_refuses_other_languages(whisper_path):
    with pytest.raises(EarsSettingsError, match="knows English only"):
        Transcriber.load(whisper_path, AsrSettings(languages=("en", "de")))


@pytest.mark.parametrize("bad", [{"languages": ()}, {"partial_window": 12.0}, {"final_window": 31.0}])
def test_settings_that_cannot_work_are_refused(bad):
    with pytest.raises(EarsSettingsError):
        AsrSettings(**bad)


def test_loading_needs_no_torch_and_no_download(whisper_path: Path):
    code = (
        "import sys, numpy as np\nfrom assistant.ears.transcriber import Transcriber\n"
        f"Transcriber.load({str(whisper_path)!r}).transcribe(np.zeros(16000, np.float32))\n"
        "heavy = {'torch', 'transformers', 'faster_whisper', 'av', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def clips():
    found = find_clips(limit=12)
    if not found:
        pytest.skip("needs recordings: Debian packages asterisk-core-sounds-en-wav, codec2-examples")
    return found


def test_fitted_windows_say_what_the_full_window_says(transcriber, clips):
    """On twelve clips one word may differ; the slow test below has enough words for a percentage."""
    full, final = measure(transcriber, clips, ("full", "final"))
    assert full.words >= 40
    assert final.differing <= 0.04 * full.words + 1
    assert final.loops == 0


@pytest.mark.slow
def test_fitted_windows_differ_in_four_words_of_a_hundred(transcriber):
    clips = find_clips(limit=150)
    if len(clips) < 100:
        pytest.skip("needs recordings: Debian packages asterisk-core-sounds-en-wav, codec2-examples")
    full, final, partial, tail = measure(transcriber, clips)
    assert full.words > 700
    assert final.differing_percent <= 4.0
    assert partial.differing_percent <= 6.0
    assert tail.differing_percent <= 10.0
    assert final.loops == 0
    assert final.median_ms < full.median_ms / 2
