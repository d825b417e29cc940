"""Keeps environment variables and filters of warnings from changing the results of suites."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator

from grader.errors import RequestError

# Prefixes of variables that are removed while suites are collected and run.
DROPPED = {
    "PYTEST_": "options and plugins for every pytest: `-k nothing` would leave out all tests",
    "_PYTEST_": "switches of pytest's own developers",
    "PY_IGNORE_IMPORTMISMATCH": "lets pytest take another file of the same name for a suite",
}


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the environment's variables and warning filters away from the suites in the block.

    Raises `RequestError` if this Python leaves out assertions, as with `PYTHONOPTIMIZE`.
    """
    if not __debug__:
        message = "this Python leaves out assertions, and with them the checks of suites"
        raise RequestError(message, "unset PYTHONOPTIMIZE   and give Python no option -O")
    beginnings = tuple(DROPPED)
    dropped = {name: value for name, value in os.environ.items() if name.startswith(beginnings)}
    for name in dropped:
        del os.environ[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with PYTHONWARNINGS=error, warnings would be errors
            yield
    finally:
        os.environ.update(dropped)
