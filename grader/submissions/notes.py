"""Notes on a submission: printable names, files that were left out, and short lists.

A note that ends in `NEEDS_REVIEW` is also a flag: what it says may have cost an exercise. Names
stand in backticks: flags that differ in nothing else are of one kind (`grader.reports.flags`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from grader.report import clean

LEFT_OUT = " and was left out"  # the end of every note on a file that is not used
NEEDS_REVIEW = "; needs review"  # the end of every note that a teacher must see
MAX_TEXT = 200  # characters
MAX_NOTES = 20
MAX_NAMED = 4  # files in one note, so that it is not cut


def printable_name(name: str) -> str:
    """Return a file name as a report can hold it: one line, without control characters.

    Bytes that are not UTF-8 are written as `\\xff`.
    """
    text = clean(os.fsencode(name).decode("utf-8", "backslashreplace"))
    return text if text.isprintable() else " ".join(text.split())


def printable_text(text: str) -> str:
    """Return any text as a report can hold it, cut to `MAX_TEXT` characters."""
    return printable_name(text.encode("utf-8", "backslashreplace").decode())[:MAX_TEXT]


def quoted(name: str) -> str:
    """Return a file's name as notes hold it."""
    shown = printable_name(name).replace("`", "'")
    return f"`{shown}`"


def listed(names: Iterable[str]) -> str:
    """Return the names of files as one list; of a long one the first, and how many more follow."""
    return ", ".join(shortened([quoted(name) for name in names], MAX_NAMED))


def left_out(name: str, why: str) -> str:
    """Return the note on a file that is left out, such as "`a.py` is a link and was left out"."""
    return f"{quoted(name)} {why}{LEFT_OUT}"


def for_review(note: str) -> str:
    """Return a note that is a flag as well."""
    return note if note.endswith(NEEDS_REVIEW) else note + NEEDS_REVIEW


def needs_review(note: str) -> bool:
    """Return whether a note is a flag as well."""
    return note.endswith(NEEDS_REVIEW)


def flags_first(notes: Iterable[str]) -> list[str]:
    """Return every note once, the flags before the others, so that no short list lacks them."""
    return sorted(dict.fromkeys(notes), key=lambda note: not needs_review(note))


def as_reason(notes: Iterable[str]) -> str:
    """Return notes as the reason why a submission cannot be used, which is always a flag."""
    return "; ".join(note.removesuffix(NEEDS_REVIEW) for note in notes)


def shortened(texts: Sequence[str], most: int = MAX_NOTES) -> list[str]:
    """Return all texts; of more than `most`, the first ones and the number of the others."""
    more = [f"and {len(texts) - most} more"] if len(texts) > most else []
    return [*texts[:most], *more]


def folded(texts: Sequence[str], most: int = MAX_NOTES) -> str:
    """Return texts as one list; of a long list, the first ones and the number of others."""
    return "; ".join(shortened(texts, most))
