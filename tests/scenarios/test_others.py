"""How busy others keep the machine."""

from __future__ import annotations

import sys

import pytest

from assistant.bench.others import Others


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/stat")
def test_own_work_is_not_others() -> None:
    others = Others()
    sum(i * i for i in range(2_000_000))
    cores = others.cores()
    assert cores is not None and 0 <= cores
