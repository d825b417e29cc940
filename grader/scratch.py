"""Temporary folders that do not stay: the next start removes those of processes that were killed.

A folder is locked as long as the process that made it lives; the kernel gives the lock back,
however the process ends. So a folder of ours without a lock has no living owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PREFIX = "grader-"
_OURS = re.compile(rf"{PREFIX}([a-z]+)-[0-9a-f]{{16}}")
_NEW = "new"  # the purpose in the name of a folder that is not locked yet
_NEW_SECONDS = 60.0


class ScratchFolder:
    """A temporary folder of this process, for its user alone; `purpose` is part of its name."""

    def __init__(self, purpose: str) -> None:
        _remove_leftovers(Path(tempfile.gettempdir()))
        ending = secrets.token_hex(8)
        root = Path(tempfile.gettempdir())
        new = root / f"{PREFIX}{_NEW}-{ending}"
        new.mkdir()
        new.chmod(0o700)  # whatever the umask is
        self._lock: int | None = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = new.rename(root / f"{PREFIX}{purpose}-{ending}")

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        if self._lock is not None:
            _remove(self.path)
            os.close(self._lock)
            self._lock = None


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
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(lock)
        if found.st_uid != os.geteuid() or (is_new and time.time() - found.st_mtime < _NEW_SECONDS):
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if somebody owns it
        _remove(folder)
    finally:
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

    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, onerror=open_up)
