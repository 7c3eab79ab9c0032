"""A served page on the real models."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assistant.build import Parts
from assistant.personas import load_persona
from assistant.web.run import WebRequest, WebService, bind
from tests.loaded import loaded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def parts(smollm2_path: Path, whisper_path: Path, piper_path: Path) -> Parts:
    return loaded(smollm2_path, whisper_path, piper_path)


Serve = Callable[..., WebService]


@pytest.fixture
def serve(parts: Parts) -> Iterator[Serve]:
    """Start a service: `serve(sessions=2)`."""
    running: list[tuple[WebService, threading.Thread]] = []

    def begin(sessions: int = 1) -> WebService:
        service = WebService(parts, load_persona("default"), WebRequest(sessions=sessions), bind(0))
        thread = threading.Thread(target=service.run)
        thread.start()
        running.append((service, thread))
        while not service.server.started:
            time.sleep(0.01)
        return service

    yield begin
    for service, thread in running:
        service.server.should_exit = True
        thread.join()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: into the documentation when CROSSTALK_PICTURES is set, else nowhere that stays."""
    return ROOT / "docs" / "pictures" if os.environ.get("CROSSTALK_PICTURES") else tmp_path
