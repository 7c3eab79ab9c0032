"""The command line: `crosstalk`. One small file per command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

_ROOMS = ("assistant", "engine", "kernels", "voices")
# The rooms know nothing of exit codes; errors of `assistant/errors.py` bring their own.
_CODES = {
    "SoundReadError": 3,
    "SavedSessionError": 3,
    "SoundWriteError": 4,
    "EarsSettingsError": 2,
    "EarsModelError": 7,
    "ModelFileError": 7,
    "VoiceError": 7,
}


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
        sys.exit(exit_code(error))


def exit_code(error: Exception) -> int:
    """What the shell is told about an error of ours."""
    own = getattr(error, "exit_code", None)
    if own is not None:
        return int(own)
    return next((_CODES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _CODES), 1)
