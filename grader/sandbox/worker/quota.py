"""Quotas on a worker's threads and files, which the zygote enforces from outside.

The kernel limits the size of a file, but neither of a folder nor of all writes, and threads only
for each user. So the zygote checks these many times a second, and ends a worker that exceeds a
quota.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from grader.sandbox.control import HUNG_UP

CHECK_SECONDS = 0.05
MAX_FOLDER_BYTES = 32 * 1024 * 1024
MAX_WRITTEN_BYTES = 1024 * 1024 * 1024  # bytes in a worker's life, as `WrittenBytes` counts them
LEAST_WRITTEN_BYTES = 1024 * 1024  # the least bytes for a file that changed between two checks
MAX_FILES = 256
MAX_THREADS = 64
BLOCK = 512  # bytes in a unit of `st_blocks`


class WrittenBytes:
    """The approximate number of bytes that a worker has written to its files in its life.

    The kernel counts them too, but only root can read that, because nobody may inspect a worker.
    So every file that changed since the last check counts with its whole size. A small file counts
    as a larger one, because it can be written many times between two checks.
    """

    def __init__(self) -> None:
        self.total = 0
        self._changed: dict[str, int] = {}  # the time of the last change, by file

    def add(self, entry: os.DirEntry[str], status: os.stat_result) -> None:
        """Count a file that is in the folder, if it has changed."""
        if self._changed.get(entry.name) != status.st_mtime_ns:
            self._changed[entry.name] = status.st_mtime_ns
            self.total += max(status.st_blocks * BLOCK, LEAST_WRITTEN_BYTES)


class QuotaMonitor:
    """The running workers and their private folders, which are subfolders of `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._reasons: dict[int, str] = {}  # by worker, why it was ended; empty while it is running
        self._written: dict[int, WrittenBytes] = {}  # by worker
        self._checked = time.monotonic()

    def folder(self, pid: int) -> Path:
        """Return the private folder of worker `pid`."""
        return self._root / str(pid)

    def add(self, pid: int) -> None:
        """Watch a new worker."""
        self._reasons[pid] = ""
        self._written[pid] = WrittenBytes()

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
            if ended:
                continue
            folder, written = self.folder(pid), self._written[pid]
            if reason := _exceeded_threads(pid) or _exceeded_files(folder, written):
                self._reasons[pid] = reason
                _kill(pid)

    def end(self, pid: int, grace: float) -> tuple[int, str]:
        """End a worker after at most `grace` seconds and remove its folder.

        Return its exit status (negative: a signal), and the reason if it was ended here.
        """
        deadline = time.monotonic() + grace
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while is_running := os.waitid(os.P_PID, pid, options) is None:
            if time.monotonic() >= deadline:
                break
            time.sleep(0.001)
        _kill(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _remove(self.folder(pid))
        self._written.pop(pid, None)
        return status, self._reasons.pop(pid, "") or (HUNG_UP if is_running else "")

    def close(self) -> None:
        """End every worker and remove all folders."""
        for pid in list(self._reasons):
            with contextlib.suppress(ChildProcessError):
                self.end(pid, 0.0)
        _remove(self._root)


def _exceeded_threads(pid: int) -> str:
    with contextlib.suppress(OSError):
        if os.stat(f"/proc/{pid}/task").st_nlink - 2 > MAX_THREADS:
            return f"your code started more than {MAX_THREADS} threads"
    return ""


def _exceeded_files(folder: Path, written: WrittenBytes) -> str:
    size = count = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                size += status.st_blocks * BLOCK
                written.add(entry, status)
            if size > MAX_FOLDER_BYTES:
                return f"your code wrote more than {MAX_FOLDER_BYTES >> 20} MiB of files"
            if count > MAX_FILES:
                return f"your code made more than {MAX_FILES} files"
    if written.total > MAX_WRITTEN_BYTES:
        return f"your code wrote its files again and again, {MAX_WRITTEN_BYTES >> 20} MiB in all"
    return ""


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(folder: Path) -> None:
    """Remove a private folder; the host removes any rest together with the root."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        folder.rmdir()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
