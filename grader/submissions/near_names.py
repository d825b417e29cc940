"""Names that nearly fit an exercise, such as `masked_softmax (1).py` or `Layer-Norm.py`."""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import takewhile

MAX_STEM = 120  # characters of a name that are compared
ALIKE = 0.85  # how similar a misspelt name must be, of 1
# Marks that systems and students put before or after a name when they copy or change a file.
MARK = re.compile(
    r"[0-9]+|v[0-9]+|(?:final|version|attempt|try|hw|homework|ex|exercise|task|assignment)[0-9]*"
    r"|copy[0-9]*|of|kopie|von|copie|de|copia|di|my|mine|new|newest|latest|last|fixed|done|finished"
    r"|complete|completed|corrected|updated|edited|revised|solution|solved|submission|submit|student"
)
TEST = re.compile(r"tests?|conftest")


def marked_copy_of(stem: str, names: Iterable[str]) -> str:
    """Return the exercise whose name this is, apart from case, separators and marks; else ""."""
    words = _words(stem)
    by_text = {_joined(name): name for name in reversed([*names])}
    last_start, first_end = _marks_before(words), len(words) - _marks_before(words[::-1])
    for start in range(last_start + 1):
        for end in range(max(start + 1, first_end), len(words) + 1):
            if name := by_text.get("".join(words[start:end])):
                return name
    return ""


def _marks_before(words: Sequence[str]) -> int:
    """Return how many of the first words are marks."""
    return sum(1 for _ in takewhile(MARK.fullmatch, words))


def resembled(stem: str, names: Iterable[str]) -> str:
    """Return the exercise whose name is in this one, the longest, or is misspelt here; else ""."""
    words = _words(stem)
    if any(map(TEST.fullmatch, words)):
        return ""
    joined = "".join(words)
    by_text = {_joined(name): name for name in names}
    inside = max((text for text in by_text if text in joined), key=len, default="")
    close = [inside] if inside else difflib.get_close_matches(joined, by_text, 1, ALIKE)
    return by_text[close[0]] if close else ""


@functools.lru_cache(maxsize=256)
def _joined(name: str) -> str:
    return "".join(_words(name))


def _words(stem: str) -> Sequence[str]:
    text = unicodedata.normalize("NFKC", stem[:MAX_STEM]).casefold()
    return re.findall(r"[^\W_]+", text)
