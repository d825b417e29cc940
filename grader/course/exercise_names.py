"""The names that an exercise can have: students import it by its name, on any system."""

from __future__ import annotations

import functools
import keyword
import re
import sys
from importlib.metadata import packages_distributions

MAX_LETTERS = 60  # letters of a name, which also names files with suffixes
PLAIN = re.compile(r"[a-z][a-z0-9_]*")
DEVICES = frozenset(  # names of devices on Windows, which no file can have, with any suffix
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)))
)
# Students import some of these beside their exercises; pytest loads the others itself.
TAKEN = frozenset(("grader", "numpy", "pytest", "torch", "conftest", "sitecustomize"))
EXAMPLE = "my_exercise"


def spelling_problem(name: str) -> str:
    """Return why no exercise can have this spelling, as the end of a sentence; or empty."""
    if not PLAIN.fullmatch(name):
        return (
            "cannot name a module: it takes small letters from a to z, digits and `_`, "
            "and begins with a letter"
        )
    if len(name) > MAX_LETTERS:
        return f"is longer than {MAX_LETTERS} letters"
    if keyword.iskeyword(name):
        return "cannot name a module: it is a keyword of Python"
    if name in DEVICES:
        return "is the name of a device on Windows, which no file can have"
    return ""


def naming_problem(name: str) -> str:
    """Return why no new exercise can have a name: its spelling, or another module of that name."""
    if problem := spelling_problem(name):
        return problem
    if name in TAKEN or name in sys.stdlib_module_names or name in _installed():
        return "is the name of another module"
    return ""


@functools.cache
def _installed() -> frozenset[str]:
    """Return the names of the modules installed here, besides Python's own."""
    return frozenset(packages_distributions())
