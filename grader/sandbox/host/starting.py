"""The start method of the processes beside this one: fork where that is safe, or spawn."""

from __future__ import annotations

import os
import sys
from typing import Literal, get_args

from grader.errors import RequestError

StartMethod = Literal["fork", "spawn"]
METHODS: tuple[str, ...] = get_args(StartMethod)
VARIABLE = "GRADER_WORKERS"


def start_method() -> str:
    """Return the start method for processes here: the user's choice, or else a safe one.

    A fork is safe on Linux. On macOS, system libraries may not survive it; Windows has none.
    """
    usual = "fork" if sys.platform == "linux" else "spawn"
    method = os.environ.get(VARIABLE) or usual
    if method not in METHODS or (method == "fork" and sys.platform == "win32"):
        raise RequestError(
            f"{VARIABLE} is {method!r}, which is no way to start a process here",
            f"{VARIABLE}={usual}",
        )
    return method


def use_start_method(method: StartMethod) -> None:
    """Use this start method from now on, here and in the processes that this one starts."""
    os.environ[VARIABLE] = method
