"""What all tests share: the real models, and which parts of the system there are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from tests.audio.speech import SpeechMaker

ROOT = Path(__file__).resolve().parent.parent

# A busy machine makes any example slow. In CI the same examples come each time, so that a change is judged and not its
# luck; new ones are looked for everywhere else, and by `make test-slow`.
hypothesis.settings.register_profile("crosstalk", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("crosstalk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a sound server or a browser run in real time beside whatever else the machine does: they get further
    tries, up to four, which the report counts as reruns."""
    for item in items:
        if item.get_closest_marker("device") or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=4))


def _pulled(name: str) -> Path:
    from assistant.cli.console import download_progress
    from assistant.models import Store, load_catalogue

    return Store().pull(load_catalogue().find(name), download_progress())


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1, a GGUF file."""
    return _pulled("smollm2-135m")


@pytest.fixture(scope="session")
def gemma3_path() -> Path:
    """Gemma 3 270M (base) Q4_K_M, a GGUF file with sliding windows; for tests only."""
    return _pulled("gemma3-270m")


@pytest.fixture(scope="session")
def whisper_path() -> Path:
    """Whisper tiny.en in CTranslate2's format, a folder."""
    return _pulled("whisper-tiny.en")


@pytest.fixture(scope="session")
def piper_path() -> Path:
    """A Piper voice, an .onnx file with its .onnx.json beside it."""
    return _pulled("piper-joe")


@pytest.fixture(scope="session")
def speech(piper_path: Path, pytestconfig: pytest.Config) -> SpeechMaker:
    """Makes speech for tests; synthesised once, then kept in pytest's cache folder."""
    cache = pytestconfig.cache
    assert cache is not None
    return SpeechMaker(piper_path, cache.mkdir("speech"))


@cache
def _missing(marker: str) -> str:
    """What a test with this marker lacks on this machine; empty if nothing."""
    if marker == "device":
        lacking = [tool for tool in ("pulseaudio", "pactl", "parec") if not shutil.which(tool)]
        try:
            import sounddevice  # noqa: F401
        except OSError:
            lacking.append("PortAudio")
        return ", ".join(lacking)
    if marker == "browser":
        return "" if shutil.which("chromium") or shutil.which("chromium-browser") else "Chromium"
    if marker == "gpu":
        check = "import torch, sys; sys.exit(not torch.cuda.is_available())"  # elsewhere: it must not load here
        found = subprocess.run([sys.executable, "-c", check], capture_output=True).returncode == 0
        return "" if found else "a GPU"
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in ("device", "browser", "gpu"):
        if item.get_closest_marker(marker) and (lacking := _missing(marker)):
            how = "" if marker == "gpu" else f"; to run it: {_install_command()}"
            pytest.skip(f"needs {lacking}{how}")


@cache
def _install_command() -> str:
    script = ROOT / "scripts" / "test_system_packages.sh"
    return subprocess.run(["bash", str(script), "--command"], capture_output=True, text=True).stdout.strip()
