"""Which phonemes belong to which word.

The phonemiser gives one string for a whole sentence. Mostly each word is a run between two blanks, but short
words may be joined ("of the" becomes one run) and a spelled word may come as several. Then the runs are matched
to the words' own phonemes by least edit distance.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heappop, heappush

# (runs, words) matched in one step, the likely ones first
_MOVES = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (4, 1), (1, 0), (0, 1))
_TAILS = "ːʲˑ"
_STRESS = str.maketrans("", "", "ˈˌː ,.;:!?ʲ")


def word_starts(phonemes: Sequence[str], words: Sequence[str], alone: Callable[[str], str]) -> list[int]:
    """For each word the index in `phonemes` at which it begins; never falling, the first is 0.

    `words` are the spoken words in order; `alone(word)` gives a word's phonemes spoken on its own (with blanks
    where it comes as several runs) and is only asked when the runs don't simply match.
    """
    runs = _runs(phonemes)
    if not words or not runs:
        return [0] * len(words)
    if len(runs) == len(words) and all(_plain(w) for w in words):
        starts = [start for start, _ in runs]
    else:
        sounds = [alone(w) for w in words]
        counts = [len(s.split()) for s in sounds]
        if sum(counts) == len(runs):
            starts = _by_count(runs, counts)
        else:
            starts = _by_distance(phonemes, runs, [_bare(s) for s in sounds])
    starts[0] = 0
    return starts


def _plain(word: str) -> bool:
    """Comes as one run for certain: no dots, and no capitals inside, at which the phonemiser divides ("iPhone")."""
    letters = word.replace("-", "").replace("'", "")
    return (
        letters.isascii() and letters.isalpha() and letters[1:].islower() or (len(letters) == 1 and letters.isalpha())
    )


def _runs(phonemes: Sequence[str]) -> list[tuple[int, int]]:
    """The stretches between blanks."""
    runs: list[tuple[int, int]] = []
    start = None
    for index, phoneme in enumerate(phonemes):
        if phoneme == " ":
            if start is not None:
                runs.append((start, index))
            start = None
        elif start is None:
            start = index
    if start is not None:
        runs.append((start, len(phonemes)))
    return runs


def _by_count(runs: list[tuple[int, int]], counts: list[int]) -> list[int]:
    starts, at = [], 0
    for count in counts:
        starts.append(runs[at][0] if at < len(runs) else runs[-1][1])
        at += count
    return starts


def _by_distance(phonemes: Sequence[str], runs: list[tuple[int, int]], sounds: list[str]) -> list[int]:
    """Match runs to words in order: one to one, several words in a run, or several runs for a word."""
    heard = [_bare(phonemes[a:b]) for a, b in runs]
    n_runs, n_words = len(runs), len(sounds)
    goal = (n_runs, n_words)
    best = {(0, 0): 0.0}
    step: dict[tuple[int, int], tuple[int, int]] = {}
    # The cheapest way first: the right one costs little, so few of the others are looked at.
    open_ends: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    while open_ends:
        cost, i, j = heappop(open_ends)
        if (i, j) == goal:
            break
        if cost > best[i, j]:
            continue
        for r, k in _MOVES:
            after = (i + r, j + k)
            if after[0] > n_runs or after[1] > n_words:
                continue
            said, expected = "".join(heard[i : i + r]), "".join(sounds[j : j + k])
            least = cost + 0.3 * (r + k != 2)  # one to one where it is as good
            if least + abs(len(said) - len(expected)) >= best.get(after, math.inf):
                continue
            total = least + _distance(said, expected)
            if total < best.get(after, math.inf):
                best[after] = total
                step[after] = (r, k)
                heappush(open_ends, (total, *after))
    starts = [0] * n_words
    i, j = goal
    while (i, j) != (0, 0):
        r, k = step[i, j]
        i, j = i - r, j - k
        begin = runs[i][0] if i < n_runs else len(phonemes)
        if k:
            starts[j : j + k] = _split(phonemes, begin, runs[i + r - 1][1] if r else begin, sounds[j : j + k])
    return starts


def _split(phonemes: Sequence[str], begin: int, end: int, sounds: Sequence[str]) -> list[int]:
    """The words inside one run: each cut where both sides fit their words best."""
    starts = [begin]
    for index in range(1, len(sounds)):
        left, right = sounds[index - 1], "".join(sounds[index:])
        begin = starts[-1]

        def misfit(cut: int, begin: int = begin, left: str = left, right: str = right) -> tuple[int, bool]:
            before, behind = phonemes[begin:cut], phonemes[cut:end]
            distance = _distance(_bare(before), left) + _distance(_bare(behind), right)
            # a length mark belongs to the vowel before it, a stress mark to the syllable behind it
            torn = bool(behind) and (behind[0] in _TAILS or unicodedata.combining(behind[0]) > 0)
            return distance, torn or bool(before and before[-1] in "ˈˌ")

        starts.append(min(range(begin, end + 1), key=misfit))
    return starts


def _bare(phonemes: Sequence[str]) -> str:
    return "".join(phonemes).translate(_STRESS)


@lru_cache(maxsize=4096)
def _distance(a: str, b: str) -> int:
    """Edit distance."""
    if not a or not b:
        return len(a) + len(b)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]
