"""The command line as somebody at a shell meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def crosstalk(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assistant.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, input=stdin, env=os.environ | environment, timeout=120
    )


def test_the_installed_command_answers() -> None:
    command = Path(sysconfig.get_path("scripts")) / "crosstalk"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("crosstalk ")


def test_help_imports_nothing_heavy() -> None:
    """Half a second to the help is a matter of imports; a list of them is surer than a stopwatch."""
    code = (
        "import sys\nfrom assistant.cli.app import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "models" in done.stdout
    heavy = {"numpy", "numba", "torch", "pydantic", "onnxruntime", "ctranslate2", "sounddevice", "engine", "kernels"}
    assert not heavy & set(json.loads(done.stderr.replace("'", '"')))


@pytest.mark.parametrize("arguments", [["modles"], ["models", "list", "--jsn"], ["models", "path"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    done = crosstalk(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_models_list(tmp_path: Path) -> None:
    done = crosstalk("models", "list", CROSSTALK_CACHE=str(tmp_path))
    assert done.returncode == 0 and "smollm2-135m" in done.stdout and "93 MB to fetch" in done.stdout
    listed = json.loads(crosstalk("models", "list", "--json", CROSSTALK_CACHE=str(tmp_path)).stdout)
    smollm = next(model for model in listed if model["name"] == "smollm2-135m")
    assert smollm["default"] and not smollm["present"] and smollm["path"] is None
    assert list(tmp_path.iterdir()) == []  # looking changes nothing


def test_a_missing_sound_library_is_one_line_and_only_when_a_device_is_wanted() -> None:
    blocked = "import sys; sys.modules['sounddevice'] = None\nfrom assistant.cli import main\nmain()"
    run = [sys.executable, "-c", blocked]
    listing = subprocess.run([*run, "models", "list"], capture_output=True, text=True, timeout=60)
    assert listing.returncode == 0
    devices = subprocess.run([*run, "devices"], capture_output=True, text=True, timeout=60)
    assert devices.returncode == 6
    assert devices.stderr.count("\n") == 1 and "libportaudio2" in devices.stderr


def test_the_wheel_holds_all_four_rooms_and_the_configs(tmp_path: Path) -> None:
    """Built as a user's pip would, installed elsewhere, and the catalogue found there."""
    source = tmp_path / "source"  # building in the checkout would leave build/ behind
    kept = ["pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"]
    kept += ["assistant", "engine", "kernels", "voices", "configs"]
    source.mkdir()
    subprocess.run(["cp", "-r", *[str(ROOT / name) for name in kept], str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)]
    subprocess.run(build, check=True, timeout=300, capture_output=True)
    (wheel,) = tmp_path.glob("crosstalk_assistant-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for wanted in ("assistant/configs/models.yaml", "assistant/configs/personas/default.yaml", "assistant/cli/app.py"):
        assert wanted in names
    for room in ("assistant", "engine", "kernels", "voices"):
        files = [p for p in (ROOT / room).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        assert {str(p.relative_to(ROOT)) for p in files} - set(names) == set()
    configs = [p for p in (ROOT / "configs").rglob("*") if p.is_file()]
    assert {f"assistant/{p.relative_to(ROOT)}" for p in configs} - set(names) == set()
    assert not [name for name in names if name.startswith(("tests", "configs", "scripts"))]

    target = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "-t", str(target), str(wheel)], check=True, capture_output=True)
    where = "import assistant.resources as r; print(r.config_file('models.yaml'))"
    environment = os.environ | {"PYTHONPATH": str(target)}
    found = subprocess.run([sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == str(target / "assistant" / "configs" / "models.yaml")


def test_a_plain_installation_needs_no_torch() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = " ".join(project["dependencies"])
    assert "torch" not in plain and "triton" not in plain and "transformers" not in plain
