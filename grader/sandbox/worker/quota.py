"""Keeping an eye on workers from outside: what no limit of the kernel covers.

The kernel limits one file, not a folder, and threads only by user. So the zygote looks at each
worker's private folder and threads many times a second, and ends one that has gone too far.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

LOOK_SECONDS = 0.05
MAX_FOLDER_BYTES = 32 * 1024 * 1024
MAX_FILES = 256
MAX_THREADS = 64
BLOCK = 512  # bytes in a unit of `st_blocks`


class Keeper:
    """The workers that run, each with its private folder beneath `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._reasons: dict[int, str] = {}
        self._looked = time.monotonic()

    def folder(self, pid: int) -> Path:
        """The private folder of worker `pid`."""
        return self._root / str(pid)

    def add(self, pid: int) -> None:
        """Look after a new worker."""
        self._reasons[pid] = ""

    @property
    def pause(self) -> float | None:
        """Seconds until the next look; None while there is nobody to look at."""
        if not self._reasons:
            return None
        return max(0.0, self._looked + LOOK_SECONDS - time.monotonic())

    def look(self) -> None:
        """End every worker that takes more than its share, if it is time for a look."""
        if self.pause != 0.0:
            return
        self._looked = time.monotonic()
        for pid, ended in self._reasons.items():
            if not ended and (reason := _excess(pid, self.folder(pid))):
                self._reasons[pid] = reason
                _kill(pid)

    def end(self, pid: int, grace: float) -> tuple[int, str]:
        """End a worker after `grace` seconds at most; its exit status and why it was ended."""
        deadline = time.monotonic() + grace
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() >= deadline:
                break
            time.sleep(0.001)
        _kill(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _remove(self.folder(pid))
        return status, self._reasons.pop(pid, "")

    def close(self) -> None:
        """End every worker, and leave nothing on disk."""
        for pid in list(self._reasons):
            with contextlib.suppress(ChildProcessError):
                self.end(pid, 0.0)
        _remove(self._root)


def _excess(pid: int, folder: Path) -> str:
    """What worker `pid` has too much of, or nothing."""
    with contextlib.suppress(OSError):
        if os.stat(f"/proc/{pid}/task").st_nlink - 2 > MAX_THREADS:
            return f"your code started more than {MAX_THREADS} threads"
    size = count = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            with contextlib.suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_blocks * BLOCK
            if size > MAX_FOLDER_BYTES:
                return f"your code wrote more than {MAX_FOLDER_BYTES >> 20} MiB of files"
            if count > MAX_FILES:
                return f"your code made more than {MAX_FILES} files"
    return ""


def _kill(pid: int) -> None:
    """End a worker and everything in its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(folder: Path) -> None:
    """Remove a private folder; whatever defies it goes with the zygote's root at the end."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        folder.rmdir()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
