"""Notes on a submission: printable names, files that were left out, and short lists."""

from __future__ import annotations

import os
from collections.abc import Sequence

from grader.report import clean

LEFT_OUT = " and was left out"  # the end of every note on a file that is not used
MAX_TEXT = 200  # characters
MAX_NOTES = 20


def printable_name(name: str) -> str:
    """Return a file name as a report can hold it: one line, without control characters.

    Bytes that are not UTF-8 are written as `\\xff`.
    """
    text = clean(os.fsencode(name).decode("utf-8", "backslashreplace"))
    return text if text.isprintable() else " ".join(text.split())


def printable_text(text: str) -> str:
    """Return any text as a report can hold it, cut to `MAX_TEXT` characters."""
    return printable_name(text.encode("utf-8", "backslashreplace").decode())[:MAX_TEXT]


def left_out(name: str, why: str) -> str:
    """Return the note on a file that is left out, such as "a.py is a link and was left out"."""
    return f"{name} {why}{LEFT_OUT}"


def shortened(texts: Sequence[str], most: int = MAX_NOTES) -> list[str]:
    """Return all texts or, if there are more than `most`, the first and how many follow."""
    more = [f"and {len(texts) - most} more"] if len(texts) > most else []
    return [*texts[:most], *more]


def folded(texts: Sequence[str], most: int = MAX_NOTES) -> str:
    """Return texts as one list; of a long one the first, and how many more there are."""
    return "; ".join(shortened(texts, most))
