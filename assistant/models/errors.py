"""What can go wrong with a model on its way onto this machine, each in one sentence for the user."""

from __future__ import annotations

from assistant.errors import CrosstalkError, ExitCode


class ModelError(CrosstalkError):
    """Base of the model errors."""

    exit_code = ExitCode.MODEL


class CatalogueError(ModelError):
    """A models.yaml says something impossible."""

    exit_code = ExitCode.USAGE


class UnknownModel(ModelError):
    """No model of that name."""


class NotPulled(ModelError):
    """The model is known but not on this machine."""


class WrongChecksum(ModelError):
    """What arrived is not what the catalogue promises."""


class FetchError(ModelError):
    """The source could not be reached, or does not have the file."""

    exit_code = ExitCode.NETWORK


class NoRoom(ModelError):
    """The disk is full, or the cache folder cannot be written."""

    exit_code = ExitCode.OUTPUT
