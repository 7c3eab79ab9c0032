"""`hf:owner/repo/file` through the hub's own client, against a hub on this machine."""

from __future__ import annotations

import pytest

from tests.models.conftest import CONTENT, User
from tests.models.test_pull import one_line


@pytest.fixture
def hub(user: User) -> User:
    user.index.hub = True
    user.index.files["/somebody/models/resolve/main/q4/tiny.gguf"] = CONTENT
    return user


def test_a_file_on_the_hub(hub: User) -> None:
    name = "hf:somebody/models/q4/tiny.gguf"
    code, out, err = hub.run("models", "pull", name)
    assert code == 0, err
    assert hub.left_over() == ["models/hf--somebody--models--q4--tiny.gguf"]
    code, out, _ = hub.run("models", "path", name)
    assert code == 0
    with open(out.strip(), "rb") as file:
        assert file.read() == CONTENT
    hub.index.asked.clear()
    assert hub.run("models", "pull", name)[0] == 0 and hub.index.asked == []


def test_no_such_file(hub: User) -> None:
    code, _, err = hub.run("models", "pull", "hf:somebody/models/other.gguf")
    assert code == 5 and "hf:somebody/models/other.gguf" in one_line(err)
    assert hub.left_over() == []


def test_no_hub(hub: User) -> None:
    hub.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
    code, _, err = hub.run("models", "pull", "hf:somebody/models/q4/tiny.gguf")
    assert code == 5 and "no network" in one_line(err)
    assert hub.left_over() == []


@pytest.mark.parametrize("name", ["hf:", "hf:somebody", "hf:somebody/models", "hf:a/b/../../../etc/passwd"])
def test_not_a_reference(hub: User, name: str) -> None:
    code, _, err = hub.run("models", "pull", name)
    assert code == 7 and "hf:OWNER/REPO/FILE" in one_line(err)
