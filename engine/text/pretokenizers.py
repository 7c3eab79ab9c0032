"""How each family cuts text into pieces before byte-level BPE, by the name GGUF files give the rule.

The patterns are facts of the published tokenizers; the tests compare the resulting ids with recorded ones.
"""

from __future__ import annotations

from tokenizers import Regex, pre_tokenizers

from engine.errors import UnsupportedModelError

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_SPLITS = {
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama-bpe": _LLAMA3,
    "dbrx": _LLAMA3,
    "smaug-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "qwen35": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "stablelm2": _QWEN2,
    "tekken": _TEKKEN,
}
_DIGITS_FIRST = {"smollm", "codeshell", "exaone", "minerva-7b", "command-r", "refact", "starcoder"}
_PLAIN = {"gpt-2", "default", "phi-2", "mpt", "olmo", "jais", "roberta-bpe"}

IGNORES_MERGES = {"llama3", "llama-v3", "llama-bpe", "tekken", "dbrx", "smaug-bpe"}
"""Rules whose tokenizers take a whole piece that is in the vocabulary without walking the merges."""


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """The pre-tokeniser for a GGUF `tokenizer.ggml.pre` name; `UnsupportedModelError` if unknown."""
    if name in _SPLITS:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_SPLITS[name]), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    by_words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in _DIGITS_FIRST:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_words])
    if name in _PLAIN:
        return by_words
    raise UnsupportedModelError(f"The tokenizer's splitting rule {name!r} is not known; known are {sorted(_SPLITS)}.")
