"""Errors of this room: each carries one sentence that tells the user what to do."""


class VoiceError(RuntimeError):
    """Something about a voice that its user can put right."""
