"""Text to ids and back, built from what the model file itself says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, decoders, models, normalizers
from tokenizers import Tokenizer as Core
from tokenizers import pre_tokenizers as _pre

from engine.errors import ModelFileError
from engine.loading.model_file import Vocabulary
from engine.text.detokenizer import Detokenizer
from engine.text.pretokenizers import IGNORES_MERGES, pre_tokenizer

_CONTROL, _USER, _BYTE = 3, 4, 6
_SPACE = "\u2581"


class Tokenizer:
    """Encoding that never reads control tokens out of plain text, and byte-exact decoding.

    `encode(text)` treats "<|im_end|>" as ten ordinary characters; `encode(text, special=True)` as the control token.
    The first is for what people say, the second for template fragments.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.stop_ids = frozenset(vocabulary.stop_tokens)
        if vocabulary.json_file is not None:
            self._core, self._special, self._bytes = _from_json(vocabulary)
        else:
            core = _bpe(vocabulary) if vocabulary.kind == "bpe" else _spm(vocabulary)
            types = vocabulary.types or (1,) * len(vocabulary.tokens)
            user = [token for token, kind in zip(vocabulary.tokens, types, strict=True) if kind == _USER]
            core.add_tokens([AddedToken(token, normalized=False) for token in user])
            self._core = core
            self._special = {token: i for i, token in enumerate(vocabulary.tokens) if types[i] == _CONTROL}
            self._bytes = _byte_table(vocabulary, types)
        longest_first = sorted(self._special, key=len, reverse=True)
        self._split = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None
        self._special_ids = frozenset(self._special.values())

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self._bytes)

    @property
    def bos_id(self) -> int | None:
        """The id put before every text, if the model wants one."""
        return self.vocabulary.bos if self.vocabulary.add_bos else None

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Ids of `text`, without a beginning-of-text token."""
        if not special or self._split is None:
            return self._plain(text)
        ids: list[int] = []
        for part in self._split.split(text):
            if part in self._special:
                ids.append(self._special[part])
            elif part:
                ids.extend(self._plain(part))
        return ids

    def _plain(self, text: str) -> list[int]:
        return list(self._core.encode(text, add_special_tokens=False).ids) if text else []

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """Text of `ids`; control tokens are shown only if `special`; invalid UTF-8 becomes U+FFFD."""
        return self.bytes_of(ids, special).decode("utf-8", errors="replace")

    def bytes_of(self, ids: Iterable[int], special: bool = False) -> bytes:
        """The exact bytes the ids stand for; ids that only pad the vocabulary stand for nothing."""
        table, n = self._bytes, len(self._bytes)
        return b"".join(table[i] for i in ids if i < n and (special or i not in self._special_ids))

    def detokenizer(self) -> Detokenizer:
        """A fresh incremental decoder."""
        return Detokenizer(self._bytes, self._special_ids)

    def id_of(self, token: str) -> int | None:
        """The id of a token by its exact spelling in the vocabulary, None if there is none."""
        return self._special.get(token, self._core.token_to_id(token))

    def is_special(self, token: int) -> bool:
        """Whether the id is a control token."""
        return token in self._special_ids


# ---- building ----------------------------------------------------------------------------------------------------


def _bpe(vocabulary: Vocabulary) -> Core:
    if not vocabulary.merges:
        raise ModelFileError("The model's byte-level tokenizer has no merges.")
    index = {token: i for i, token in enumerate(vocabulary.tokens)}
    merges = []
    for merge in vocabulary.merges:
        left, _, right = merge.partition(" ")
        merges.append((left, right))
    try:
        model = models.BPE(vocab=index, merges=merges, ignore_merges=vocabulary.pre in IGNORES_MERGES)
    except Exception as error:  # the library raises nothing more specific
        raise ModelFileError(f"The model's tokenizer is damaged: {error}.") from error
    core = Core(model)
    core.pre_tokenizer = pre_tokenizer(vocabulary.pre)
    core.decoder = decoders.ByteLevel()
    return core


def _spm(vocabulary: Vocabulary) -> Core:
    """SentencePiece BPE: a pair may merge if the joined piece exists, better-scored pieces first."""
    index = {token: i for i, token in enumerate(vocabulary.tokens)}
    scores, types = vocabulary.scores, vocabulary.types
    ranked: list[tuple[float, int, str, str]] = []
    for token, i in index.items():
        if len(token) < 2 or types[i] in (_CONTROL, _BYTE):
            continue
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in index and right in index:
                ranked.append((-scores[i], i, left, right))
    ranked.sort(key=lambda entry: (entry[0], entry[1], index[entry[2]], index[entry[3]]))
    unknown = vocabulary.unknown
    core = Core(
        models.BPE(
            vocab=index,
            merges=[(left, right) for _, _, left, right in ranked],
            unk_token=None if unknown is None else vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    steps: list[normalizers.Normalizer] = [normalizers.Prepend(_SPACE)] if vocabulary.add_space_prefix else []
    core.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", _SPACE)])
    return core


def _byte_table(vocabulary: Vocabulary, types: Sequence[int]) -> list[bytes]:
    if vocabulary.kind == "bpe":
        plain = _byte_alphabet()
        return [
            token.encode() if kind in (_CONTROL, _USER) else _gpt2_bytes(token, plain)
            for token, kind in zip(vocabulary.tokens, types, strict=True)
        ]
    return [
        bytes([int(token[3:-1], 16)]) if kind == _BYTE else token.replace(_SPACE, " ").encode()
        for token, kind in zip(vocabulary.tokens, types, strict=True)
    ]


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE spells each byte as one printable character; this maps the characters back."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in set(printable)]
    table.update({chr(256 + i): b for i, b in enumerate(others)})
    return table


def _gpt2_bytes(token: str, alphabet: dict[str, int]) -> bytes:
    try:
        return bytes(alphabet[c] for c in token)
    except KeyError:
        return token.encode()  # a token added as plain text


def _from_json(vocabulary: Vocabulary) -> tuple[Core, dict[str, int], list[bytes]]:
    """A Hugging Face `tokenizer.json`, with its special tokens made unreachable from plain text."""
    try:
        core = Core.from_file(str(vocabulary.json_file))
    except Exception as error:  # the library raises nothing more specific
        raise ModelFileError(f"{vocabulary.json_file} is not a tokenizer: {error}.") from error
    core.post_processor = None  # type: ignore[assignment]  # fragments bring their own beginning-of-text token
    core.encode_special_tokens = True
    added = core.get_added_tokens_decoder()
    special = {token.content: i for i, token in added.items() if token.special}
    byte_level = "ByteLevel" in str(core.decoder) or isinstance(core.pre_tokenizer, _pre.ByteLevel)
    alphabet = _byte_alphabet()
    table = [b""] * (max(core.get_vocab(with_added_tokens=True).values()) + 1)
    for token, i in core.get_vocab(with_added_tokens=True).items():
        if i in added:
            table[i] = token.encode()
        elif byte_level:
            table[i] = _gpt2_bytes(token, alphabet)
        elif re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            table[i] = bytes([int(token[3:-1], 16)])
        else:
            table[i] = token.replace(_SPACE, " ").encode()
    return core, special, table
