"""Temporary folders that do not stay: the next start removes those of processes that were killed.

A folder is locked as long as the process that made it lives; the kernel gives the lock back,
however the process ends. So a folder of ours without a lock has no living owner. Windows locks no
folders: there, one that is a day old has none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PREFIX = "grader-"
_OURS = re.compile(rf"{PREFIX}([a-z]+)-[0-9a-f]{{16}}")
_NEW = "new"  # the purpose in the name of a folder that is not locked yet
_NEW_SECONDS = 60.0
_OLD_SECONDS = 86_400.0
_TRIES, _PAUSE = 10, 0.1  # Windows removes no folder that an ending process is still in


class ScratchFolder:
    """A temporary folder of this process, for its user alone; `purpose` is part of its name."""

    def __init__(self, purpose: str) -> None:
        _remove_leftovers(Path(tempfile.gettempdir()))
        ending = secrets.token_hex(8)
        root = Path(tempfile.gettempdir())
        new = root / f"{PREFIX}{_NEW}-{ending}"
        new.mkdir()
        new.chmod(0o700)  # whatever the umask is
        self._lock = _lock(new)
        self.path = new.rename(root / f"{PREFIX}{purpose}-{ending}")

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        _remove(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(folder: Path) -> int | None:
    """Lock a folder for as long as this process lives; return what keeps the lock."""
    if sys.platform == "win32":
        return None
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if somebody owns it
    except BaseException:
        os.close(lock)
        raise
    return lock


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Yield a temporary folder, and remove it after the block."""
    folder = ScratchFolder(purpose)
    try:
        yield folder.path
    finally:
        folder.close()


@functools.cache  # once for each process and place
def _remove_leftovers(root: Path) -> None:
    """Remove the folders of ours in `root` that no living process owns."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if (name := _OURS.fullmatch(entry.name)) is not None:
                with contextlib.suppress(OSError):
                    _remove_unowned(Path(entry.path), is_new=name[1] == _NEW)


def _remove_unowned(folder: Path, *, is_new: bool) -> None:
    found = folder.lstat()
    age = time.time() - found.st_mtime
    if sys.platform == "win32":
        if age > _OLD_SECONDS:
            _remove(folder)
    elif found.st_uid == os.geteuid() and not (is_new and age < _NEW_SECONDS):
        lock = _lock(folder)
        _remove(folder)
        if lock is not None:
            os.close(lock)


def _remove(folder: Path) -> None:
    def open_up(function: Callable[..., Any], path: str, _: Any) -> None:
        """Try again in a folder that was closed to its owner, and pass over what stays."""
        with contextlib.suppress(OSError):
            if os.fspath(path) != os.fspath(folder):  # the folder above is not ours
                os.chmod(os.path.dirname(path), stat.S_IRWXU)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    for left in reversed(range(_TRIES)):
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, onerror=open_up)
        if sys.platform != "win32" or not left or not folder.exists():
            return
        time.sleep(_PAUSE)
