"""A conversation on disk, so that it goes on where it was after a restart and computes nothing again.

    conversation.json            which session file is the present one, and what its tokens mean
    conversation-SERIAL.session  ids, keys and values, written by the engine

The notes name the session file, and are replaced last: whatever is interrupted, one whole pair is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from engine import Engine, SavedSessionError, Session

FORMAT = 1
NOTES = "conversation.json"


@dataclass(frozen=True)
class Kept:
    """The past of a dialogue. `head`: how many of the session's ids are the persona's prompt. `turns`: where turns
    begin. `after_system`: the next user turn follows the system prompt directly."""

    session: Session
    head: int
    turns: tuple[int, ...] = ()
    after_system: bool = False


def save_kept(kept: Kept, folder: Path) -> int:
    """Write it; returns the number of tokens. SavedSessionError if the disk refuses: what was there before stays."""
    name = f"conversation-{secrets.token_hex(4)}.session"
    length = len(kept.session)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept.session.save(folder / name)
        notes = {
            "format": FORMAT,
            "session": name,
            "tokens": length,
            "head": kept.head,
            "turns": list(kept.turns),
            "after_system": kept.after_system,
        }
        fresh = folder / f"{NOTES}.new"
        fresh.write_text(json.dumps(notes), encoding="utf-8")
        os.replace(fresh, folder / NOTES)
        for old in folder.glob("conversation-*.session"):
            if old.name != name:
                old.unlink(missing_ok=True)
    except OSError as error:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
        raise SavedSessionError(
            f"the conversation cannot be written to {folder}: {error.strerror or error}."
        ) from error
    return length


def load_kept(engine: Engine, folder: Path) -> Kept | None:
    """What `save_kept` wrote; None if there is nothing. SavedSessionError if it is damaged or of another model."""
    try:
        notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SavedSessionError(f"the saved conversation in {folder} cannot be read: {error}.") from error
    try:
        name, head, turns = Path(notes["session"]).name, int(notes["head"]), [int(at) for at in notes["turns"]]
        known = notes["format"] == FORMAT
    except (KeyError, TypeError, ValueError) as error:
        raise SavedSessionError(f"the notes beside the saved conversation in {folder} are damaged.") from error
    if not known:
        raise SavedSessionError(f"the saved conversation in {folder} was written by another version.")
    session = engine.load_session(folder / name)
    if not 0 < head <= len(session) == notes.get("tokens"):
        session.close()
        raise SavedSessionError(f"the notes in {folder} do not fit the saved session.")
    return Kept(session, head, tuple(turns), bool(notes.get("after_system")))
