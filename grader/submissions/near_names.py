"""Names that nearly fit an exercise, such as `masked_softmax (1).py` or `Layer-Norm.py`."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import combinations

MAX_STEM = 120  # characters of a name that are compared
ALIKE = 0.85  # how similar a misspelt name must be, of 1
# What systems and students put before or after a name when they copy or change a file.
MARK = re.compile(
    r"[0-9]+|v[0-9]+|(?:final|version|attempt|try|hw|homework|ex|exercise|task|assignment)[0-9]*"
    r"|copy[0-9]*|of|kopie|von|copie|de|copia|di|my|mine|new|newest|latest|last|fixed|done|finished"
    r"|complete|completed|corrected|updated|edited|revised|solution|solved|submission|submit|student"
)
TEST = re.compile(r"tests?|conftest")


def marked_copy_of(stem: str, names: Iterable[str]) -> str:
    """Return the exercise whose name this is but for case, separators and marks; else ""."""
    words = _words(stem)
    for start, end in combinations(range(len(words) + 1), 2):
        outside = [*words[:start], *words[end:]]
        if all(map(MARK.fullmatch, outside)):
            fitting = [name for name in names if _joined(name) == "".join(words[start:end])]
            if fitting:
                return fitting[0]
    return ""


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


def _words(stem: str) -> Sequence[str]:
    text = unicodedata.normalize("NFKC", stem[:MAX_STEM]).casefold()
    return re.findall(r"[^\W_]+", text)


def _joined(name: str) -> str:
    return "".join(_words(name))
