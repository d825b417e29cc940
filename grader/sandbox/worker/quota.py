"""Quotas on a worker's threads and files, which the zygote enforces from outside.

The kernel limits the size of a file but not of a folder, and threads only for each user. So the
zygote checks both many times a second and ends a worker that exceeds a quota.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

CHECK_SECONDS = 0.05
MAX_FOLDER_BYTES = 32 * 1024 * 1024
MAX_FILES = 256
MAX_THREADS = 64
BLOCK = 512  # bytes in a unit of `st_blocks`


class QuotaMonitor:
    """The running workers and their private folders, which are subfolders of `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._reasons: dict[int, str] = {}  # by worker, why it was ended; empty while it runs
        self._checked = time.monotonic()

    def folder(self, pid: int) -> Path:
        """Return the private folder of worker `pid`."""
        return self._root / str(pid)

    def add(self, pid: int) -> None:
        """Watch a new worker."""
        self._reasons[pid] = ""

    @property
    def pause(self) -> float | None:
        """Seconds until the next check is due; None while there are no workers."""
        if not self._reasons:
            return None
        return max(0.0, self._checked + CHECK_SECONDS - time.monotonic())

    def check(self) -> None:
        """End every worker that exceeds a quota, if a check is due."""
        if self.pause != 0.0:
            return
        self._checked = time.monotonic()
        for pid, ended in self._reasons.items():
            if not ended and (reason := _exceeded_quota(pid, self.folder(pid))):
                self._reasons[pid] = reason
                _kill(pid)

    def end(self, pid: int, grace: float) -> tuple[int, str]:
        """End a worker after at most `grace` seconds and remove its folder.

        Return its exit status (negative: a signal) and the quota that it exceeded, if any.
        """
        deadline = time.monotonic() + grace
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, pid, options) is None and time.monotonic() < deadline:
            time.sleep(0.001)
        _kill(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _remove(self.folder(pid))
        return status, self._reasons.pop(pid, "")

    def close(self) -> None:
        """End every worker and remove all folders."""
        for pid in list(self._reasons):
            with contextlib.suppress(ChildProcessError):
                self.end(pid, 0.0)
        _remove(self._root)


def _exceeded_quota(pid: int, folder: Path) -> str:
    """Return which quota worker `pid` exceeds, in words for the student; empty if none."""
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
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(folder: Path) -> None:
    """Remove a private folder; the host removes what remains with the root."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        folder.rmdir()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
