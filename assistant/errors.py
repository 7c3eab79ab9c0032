"""Errors that end in one line for the user, and the exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What `crosstalk` returns to the shell; listed by `crosstalk --help`."""

    OK = 0
    FAILED = 1  # something went wrong that has no code of its own
    USAGE = 2  # the command line or a settings file says something impossible
    INPUT = 3  # a file to read is missing, or not what it should be
    OUTPUT = 4  # a file cannot be written
    NETWORK = 5  # something had to be fetched and could not be
    DEVICE = 6  # no microphone, speaker or sound library
    MODEL = 7  # a model is missing, damaged or of an unknown kind
    INTERRUPTED = 130


class CrosstalkError(Exception):
    """Base of the assistant's errors: the message is one sentence that says what to do about it."""

    exit_code: ExitCode = ExitCode.FAILED
