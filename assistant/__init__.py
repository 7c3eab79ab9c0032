"""The conversation: sound in and out, turns, barge-in, and the programs people run."""

__version__ = "0.1.0"
