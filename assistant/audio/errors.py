"""What can be wrong with sound on its way in or out, each in one sentence for the user."""


class AudioError(Exception):
    """Base of every error of this folder; the message is one sentence that says what to do."""


class SoundReadError(AudioError):
    """A sound file is missing, not a sound file, or holds no sound."""


class SoundWriteError(AudioError):
    """A sound file cannot be written where it was asked for."""
