"""What can go wrong in the ears, each in one sentence for the user."""


class EarsError(Exception):
    """Base of every error of this folder; the message is one sentence that says what to do."""


class EarsModelError(EarsError):
    """A model file is missing or does not fit."""


class EarsSettingsError(EarsError):
    """A setting has a value that cannot work."""
