"""The kinds of flags: flags that differ only in names and numbers are of one kind."""

from __future__ import annotations

import re
from collections.abc import Collection

LEFT_OPEN = "…"  # stands for what differs
NAMES = r"`[^`]*`"  # in a flag, the names of files stand in backticks
NUMBER = r"(?<![\w-])\d[\w.:-]*"
MORE = rf"(?:,? and |, ){LEFT_OPEN}(?: more)?"


def kind_of(flag: str, exercises: Collection[str]) -> str:
    """Return a flag without the names of files and exercises, and without numbers."""
    own = "|".join([NAMES, *(rf"\b{re.escape(name)}\b" for name in exercises), NUMBER])
    return re.sub(rf"{LEFT_OPEN}(?:{MORE})+", LEFT_OPEN, re.sub(own, LEFT_OPEN, flag))
