"""The command line: `crosstalk`. One small file per command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

_ROOMS = ("assistant", "engine", "kernels", "voices")


def main() -> None:
    """The console script: any error of ours ends in one line and an exit code, anything else is a bug and shows."""
    from assistant.cli.app import app

    try:
        app(prog_name="crosstalk")
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _ROOMS:
            raise
        message = " ".join(str(error).split())
        print(f"crosstalk: {message}", file=sys.stderr)
        sys.exit(int(getattr(error, "exit_code", 1)))
