"""The folders for the grader's data about its user.

State is lost with its folder; a cache holds only data that can be computed again.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

APPLICATION = "attention-grader"


def state_folder() -> Path | None:
    """Return the folder for state, such as what this user trusts; None if the user has none."""
    return _folder("XDG_STATE_HOME", ".local/state", "Library/Application Support", "")


def cache_folder() -> Path | None:
    """Return the folder for data that can be computed again; None if the user has none."""
    return _folder("XDG_CACHE_HOME", ".cache", "Library/Caches", "cache")


def _folder(variable: str, unix: str, darwin: str, windows: str) -> Path | None:
    if (given := Path(os.environ.get(variable, ""))).is_absolute():
        return given / APPLICATION
    with contextlib.suppress(RuntimeError):  # the user's home is unknown
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local or Path.home() / "AppData" / "Local") / APPLICATION / windows
        return Path.home() / (darwin if sys.platform == "darwin" else unix) / APPLICATION
    return None
