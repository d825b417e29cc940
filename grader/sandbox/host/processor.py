"""The kernel's counts of a process: its processor time, and its wait for a core.

Only Linux has them; elsewhere nothing is known, and the clock decides. Knows nothing of workers.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def used_by(pid: int) -> tuple[float, float] | None:
    """Return the seconds of processor time and the bytes of memory of a process, if known."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in brackets, may hold spaces.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
            return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")
    return None


def waited_by(pid: int) -> float:
    """Return the seconds that a process waited for a core; 0 if that is unknown."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class Starvation:
    """The wait of a process for a core from now on, which is no fault of its code.

    Code can make itself wait, by starting many threads. So a process that computes for `seconds`
    is owed nothing, and no process more than `MOST` times that.
    """

    MOST = 20.0

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._seconds = pid, seconds
        self._waited, self._used = waited_by(pid), used_by(pid)

    def owed(self) -> float:
        """Return the seconds by which a deadline moves."""
        now = used_by(self._pid)
        if now is None or self._used is None or now[0] - self._used[0] >= self._seconds:
            return 0.0
        return min(waited_by(self._pid) - self._waited, self.MOST * self._seconds)
