"""The folders for what the grader keeps of the user who runs it.

State is lost with its folder; a cache holds only what can be worked out again.
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
    """Return the folder for what can be worked out again; None if the user has none."""
    return _folder("XDG_CACHE_HOME", ".cache", "Library/Caches", "cache")


def _folder(variable: str, unix: str, darwin: str, windows: str) -> Path | None:
    if (given := Path(os.environ.get(variable, ""))).is_absolute():
        return given / APPLICATION
    with contextlib.suppress(RuntimeError):  # nobody knows the user's home
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local or Path.home() / "AppData" / "Local") / APPLICATION / windows
        return Path.home() / (darwin if sys.platform == "darwin" else unix) / APPLICATION
    return None
