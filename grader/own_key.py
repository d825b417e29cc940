"""The user's own key: what it signs is believed later, wherever it lies.

A folder that somebody else may have filled can hold anything under the names that the grader
uses, so whatever is kept there and decides something is signed. Without a key, nothing is kept.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import sys
from pathlib import Path

from grader.files import write_whole
from grader.trees import NotOpened, read_file

APPLICATION = "attention-grader"
BYTES = 32  # of a key, and of a signature


def signed(data: bytes, what: str) -> bytes | None:
    """Return data behind a signature which says that it is `what`; None without a key."""
    key = _key(state_folder())
    return None if key is None else _signature(key, data, what) + data


def signed_data(signed: bytes, what: str) -> bytes | None:
    """Return the data behind a signature; None if this user has not signed it as `what`."""
    key, data = _key(state_folder()), signed[BYTES:]
    is_own = key is not None and hmac.compare_digest(signed[:BYTES], _signature(key, data, what))
    return data if is_own else None


def _signature(key: bytes, data: bytes, what: str) -> bytes:
    return hmac.digest(key, what.encode() + b"\0" + data, "sha256")


def state_folder() -> Path | None:
    """Return the folder for what the grader keeps of this user; None if the user has none."""
    if (given := Path(os.environ.get("XDG_STATE_HOME", ""))).is_absolute():
        return given / APPLICATION
    with contextlib.suppress(RuntimeError):  # nobody knows the user's home
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local or Path.home() / "AppData" / "Local") / APPLICATION
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / APPLICATION
        return Path.home() / ".local" / "state" / APPLICATION
    return None


@functools.cache
def _key(folder: Path | None) -> bytes | None:
    """Return the key in a folder, which is made if there is none; None if that is impossible."""
    if folder is None:
        return None
    path = folder / "key"
    with contextlib.suppress(OSError, NotOpened):
        if not path.exists():
            write_whole(path, os.urandom(BYTES))
        key = read_file(path, folder, BYTES)  # two commands may have made one at the same time
        return key if len(key) == BYTES else None
    return None
