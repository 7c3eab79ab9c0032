"""The LLM engine: weights, tokenizer, paged cache, prefix index, scheduler, sampling, sessions."""

from engine.engine import Engine, EngineStats
from engine.errors import (
    Cancelled,
    ContextFull,
    EngineError,
    ModelFileError,
    OutOfPages,
    SavedSessionError,
    SessionClosed,
    ShiftRefused,
    UnsupportedModelError,
)
from engine.generate import Finish, Generation, Token
from engine.jobs import Usage
from engine.scoring import SuffixScore
from engine.session import Session
from engine.settings import EngineSettings, Priority, Sampling
from engine.text.detokenizer import Detokenizer
from engine.text.template import ChatFragments
from engine.text.tokenizer import Tokenizer

AppendStats = Usage

__all__ = [
    "AppendStats",
    "Cancelled",
    "ChatFragments",
    "ContextFull",
    "Detokenizer",
    "Engine",
    "EngineError",
    "EngineSettings",
    "EngineStats",
    "Finish",
    "Generation",
    "ModelFileError",
    "OutOfPages",
    "Priority",
    "Sampling",
    "SavedSessionError",
    "Session",
    "SessionClosed",
    "ShiftRefused",
    "SuffixScore",
    "Token",
    "Tokenizer",
    "UnsupportedModelError",
    "Usage",
]
