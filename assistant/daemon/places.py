"""Where a daemon keeps its things and where its control socket is."""

from __future__ import annotations

import os
from pathlib import Path

SOCKET = "control.sock"
SYSTEM_SOCKET = Path("/run/crosstalk") / SOCKET
SOCKET_VARIABLE = "CROSSTALK_SOCKET"


def state_folder(chosen: Path | None) -> Path:
    """The folder of the kept conversation: the chosen one, systemd's, or the user's."""
    if chosen is not None:
        return chosen.expanduser().absolute()
    if given := os.environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return Path(given)
    import platformdirs

    return platformdirs.user_state_path("crosstalk", appauthor=False)


def socket_path(chosen: Path | None, state: Path) -> Path:
    """Where the daemon listens."""
    if chosen is not None:
        return chosen.expanduser().absolute()
    if given := os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]:
        return Path(given) / SOCKET
    return _of_user() or state / SOCKET


def find_socket(chosen: Path | None) -> Path:
    """Where a client looks: the chosen one, $CROSSTALK_SOCKET, the user's daemon, the system's, the state folder."""
    if chosen is not None:
        return chosen.expanduser().absolute()
    if given := os.environ.get(SOCKET_VARIABLE):
        return Path(given)
    state = state_folder(None) / SOCKET
    places = [place for place in (_of_user(), SYSTEM_SOCKET, state) if place is not None]
    return next((place for place in places if place.exists()), places[0])


def _of_user() -> Path | None:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "crosstalk" / SOCKET if runtime else None
