"""The shell scripts behind `make`, on machines that are not like this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of commands that is all of the PATH: the few that a shell script needs, and what a test puts there."""
    for name in ("bash", "dirname", "cat", "env"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    return tmp_path


def put(machine: Path, name: str, script: str) -> None:
    (machine / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
    (machine / name).chmod(0o755)


def run(machine: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    bash = shutil.which("bash") or "bash"
    variables = {"PATH": str(machine), "HOME": str(machine), **environment}
    return subprocess.run([bash, str(SCRIPTS / script)], env=variables, capture_output=True, text=True, timeout=60)


def test_a_python_is_found_by_running_it(machine: Path) -> None:
    put(machine, "python3", "exit 127")  # a version manager's shim for a Python that is not there
    put(machine, "python3.12", f'exec "{sys.executable}" "$@"')
    done = run(machine, "find_python.sh")
    assert (done.returncode, done.stdout) == (0, "python3.12\n")


def test_no_python_says_what_to_install(machine: Path) -> None:
    put(machine, "python3", "exit 1")  # too old
    done = run(machine, "find_python.sh")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "3.11, 3.12 or 3.13" in done.stderr
    done = run(machine, "find_python.sh", PYTHON="/opt/python2")
    assert done.returncode == 1 and "PYTHON=/opt/python2" in done.stderr


def test_a_python_without_venv_says_what_to_install(machine: Path) -> None:
    real = f'exec "{sys.executable}" "$@"'
    put(machine, "python3", f'case "$*" in *ensurepip*) exit 1;; esac\n{real}')
    done = run(machine, "find_python.sh")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.returncode == 1 and f"python{version}-venv" in done.stderr


def apt(machine: Path, uid: int, sudo: int) -> Path:
    log = machine / "apt.log"
    put(machine, "dpkg-query", "echo not-installed")
    put(machine, "id", f"echo {uid}")
    put(machine, "sudo", f'[ "$1" = -n ] || exit 9\nshift\n[ "$1" = true ] && exit {sudo}\nexec "$@"')
    # Like apt: one unknown package, and nothing of the whole list is installed.
    refuses = 'case "$*" in *chromium*) exit 100;; esac'
    put(machine, "apt-get", f'echo "$@" >>{log}\n{refuses}')
    return log


@pytest.mark.parametrize(("uid", "sudo"), [(0, 1), (1000, 0)])
def test_packages_are_installed_where_that_needs_no_password(machine: Path, uid: int, sudo: int) -> None:
    log = apt(machine, uid, sudo)
    done = run(machine, "test_system_packages.sh")
    assert done.returncode == 0, done.stderr
    calls = log.read_text().splitlines()
    assert calls[0].startswith("update") and "pulseaudio" in calls[1] and "chromium" in calls[1]
    # The one that this system lacks did not cost the others.
    assert [call.split()[-1] for call in calls[2:]].count("pulseaudio") == 1
    assert "could not install chromium" in done.stdout


def test_elsewhere_the_one_command_is_named(machine: Path) -> None:
    log = apt(machine, uid=1000, sudo=1)
    done = run(machine, "test_system_packages.sh")
    assert done.returncode == 0 and not log.exists()
    assert done.stdout.count("\n") == 1 and "sudo apt-get install -y" in done.stdout.replace("update && ", "")


def test_a_system_without_apt(machine: Path) -> None:
    done = run(machine, "test_system_packages.sh")
    assert done.returncode == 0 and "no apt here" in done.stdout


def test_make_setup_does_nothing_when_up_to_date() -> None:
    """With a stamp newer than what it depends on, not even a shell is started."""
    make = shutil.which("make")
    stamp = SCRIPTS.parent / ".venv" / ".crosstalk-setup"
    if not make or not stamp.exists():
        pytest.skip("not run from `make test`")
    os.utime(stamp)
    done = subprocess.run([make, "-C", str(SCRIPTS.parent), "setup"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Nothing to be done" in done.stdout
