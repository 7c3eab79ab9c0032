"""Everything the engine raises at its users: one class per thing that can go wrong, one sentence each."""

from __future__ import annotations


class EngineError(Exception):
    """Base of all engine errors."""


class ModelFileError(EngineError):
    """A model file is missing, corrupt or incomplete; the message names what."""


class UnsupportedModelError(ModelFileError):
    """The file is sound but holds an architecture, tokenizer or option this engine does not know."""


class TemplateError(EngineError):
    """A chat template cannot be cut into the fragments that are appended."""


class ContextFull(EngineError):
    """The sequence would grow beyond the model's context length."""


class OutOfPages(EngineError):
    """The memory limit is reached and nothing more can be evicted."""


class Cancelled(EngineError):
    """The job was cancelled; the session is as it was before an append, or holds what generate gave out."""


class SessionClosed(EngineError):
    """The session or its engine has been closed."""


class SavedSessionError(EngineError):
    """A saved session does not fit this model or is damaged; the message says which."""


class ShiftRefused(EngineError):
    """The cache cannot be shifted in place without changing what the model sees; the message says why."""


class InvariantBroken(EngineError):
    """The validator found bookkeeping that contradicts itself: a bug in the engine."""
