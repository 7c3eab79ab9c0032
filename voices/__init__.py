"""What the assistant sounds like: clauses, text made speakable, Piper voices, word timing.

Importing this loads no model and no phonemiser; see README.md for the way of a clause from text to heard letters.
"""

from voices.clauses import Clause, ClauseSplitter
from voices.errors import VoiceError
from voices.piper import Speech, SpeechPiece, Voice
from voices.silence import Pauses
from voices.speakable import SpokenText, SpokenWord, speakable
from voices.timing import WordTiming, at_rate, char_at, heard_chars

__all__ = [
    "Clause",
    "ClauseSplitter",
    "Pauses",
    "Speech",
    "SpeechPiece",
    "SpokenText",
    "SpokenWord",
    "Voice",
    "VoiceError",
    "WordTiming",
    "at_rate",
    "char_at",
    "heard_chars",
    "speakable",
]
