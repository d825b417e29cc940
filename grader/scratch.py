"""Temporary folders that are removed even if the process that made them is killed.

The process that makes a folder holds a lock on it; the kernel releases the lock, however the
process ends. So a folder of ours without a lock has no living owner, and the next start removes
it. A folder with secrets does not wait for that: a separate process waits for its lock and removes
it. Windows cannot lock folders: there, a folder that is a day old counts as abandoned.

    python -I -S scratch.py FOLDER waits for the lock of a folder, and removes the folder

This file must import nothing of the rest of the project.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PREFIX = "grader-"
_OURS = re.compile(rf"{PREFIX}([a-z]+)-[0-9a-f]{{16}}")
_NEW = "new"  # stands in the name for the purpose until the folder is locked
_NEW_SECONDS = 60.0
_OLD_SECONDS = 86_400.0
_TRIES, _PAUSE = 10, 0.1  # Windows cannot remove a folder that an ending process still uses


class ScratchFolder:
    """A temporary folder of this process, for its user alone; `purpose` is part of its name.

    With `outlived`, it is removed at once even if this process is killed.
    """

    def __init__(self, purpose: str, *, outlived: bool = False) -> None:
        _remove_leftovers(Path(tempfile.gettempdir()))
        ending = secrets.token_hex(8)
        root = Path(tempfile.gettempdir())
        new = root / f"{PREFIX}{_NEW}-{ending}"
        new.mkdir()
        new.chmod(0o700)  # whatever the umask is
        self._lock = _lock(new)
        self.path = new.rename(root / f"{PREFIX}{purpose}-{ending}")
        self._owner = os.getpid()
        self._remover = _start_remover(self.path) if outlived and self._lock is not None else None

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        _remove(self.path)
        if self._remover is not None and self._owner == os.getpid():
            self._remover.kill()
            self._remover.wait()
            self._remover = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(folder: Path, *, waits: bool = False) -> int | None:
    """Lock a folder for as long as this process lives; return the open file that holds the lock.

    If another process has locked it, wait for the lock, or raise `BlockingIOError`.
    """
    if sys.platform == "win32":
        return None
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BaseException:
        os.close(lock)
        raise
    return lock


def _start_remover(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that removes a folder when its lock is released.

    It is in a session of its own, so no signal to our group or from our terminal ends it, and it
    has nothing of ours: no environment, no open file.
    """
    nothing = subprocess.DEVNULL
    command = [sys.executable, "-I", "-S", "-X", "utf8", __file__, os.fspath(folder)]
    return subprocess.Popen(
        command,
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        cwd=folder.anchor,
        env={},
        start_new_session=True,
    )


def _outlive(folder: Path) -> None:
    """Remove a folder as soon as its owner has ended."""
    with contextlib.suppress(FileNotFoundError):  # its owner has removed it
        _lock(folder, waits=True)
        _remove(folder)


def fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, by their paths in it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@contextlib.contextmanager
def scratch_folder(purpose: str, *, outlived: bool = False) -> Iterator[Path]:
    """Yield a temporary folder; remove it after the block, even if this process is killed."""
    folder = ScratchFolder(purpose, outlived=outlived)
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
        """Open a folder that its owner may not enter and try again; skip what cannot be removed."""
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


if __name__ == "__main__":
    _outlive(Path(sys.argv[1]))
