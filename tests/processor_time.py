"""How much processor time each file of tests takes, with all the processes that it starts.

A file that takes more than `MOST` seconds is named in `conftest.LONG`, or the run fails. With
`--keep-times`, the table is kept in CONTRIBUTING.md.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest
import turns
from pages import keep

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
MOST = 20.0  # seconds of processor time of a file that is not named as long
COUNTED, COUNTS_IN = 3_000_000, 0.12  # additions, and the seconds in which a machine of today adds
SHOWN = 25
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def family(pid: int) -> Iterator[tuple[int, float]]:
    """Yield a process and all below it, each with its time and that of its ended children."""
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text("utf-8", errors="replace").rpartition(")")[2].split()
            one = int(path.parent.name)
            parents[one], times[one] = int(words[1]), sum(map(int, words[11:15])) / TICKS
    level = {pid} & set(times)
    while level:
        yield from ((one, times[one]) for one in level)
        level = {one for one, parent in parents.items() if parent in level}


class ProcessorTime:
    """A plugin of pytest that adds up what files take, in whichever processes run them."""

    def __init__(self, long: Container[str]) -> None:
        self._long = long
        self._files: Counter[str] = Counter()
        self._so_far, self._since = self._now(), time.monotonic()

    @staticmethod
    def _now() -> float:
        return sum(seconds for _, seconds in family(os.getpid()))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Look at the clock when a file ends."""
        if nextitem is None or nextitem.path != item.path:
            now, at = self._now(), time.monotonic()
            # What an earlier file left running is seen only when it ends, with all of its time.
            most = (at - self._since) * (os.cpu_count() or 1)
            self._files[item.path.stem] += min(max(0.0, now - self._so_far), most)
            self._so_far, self._since = now, at

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that shares out the tests, and end what they have left running."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["processor_time"] = dict(self._files)
        elif self.too_long() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if not session.config.getoption("numprocesses", None):  # whose processes do it themselves
            for pid, _ in [*family(os.getpid())][1:]:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what one of the processes has taken."""
        self._files.update(getattr(node, "workeroutput", {}).get("processor_time", {}))

    def too_long(self) -> list[str]:
        """Return the files that take long and are not named as such."""
        if turns.IS_WHOLE:  # also where somebody names a file
            return []
        most = MOST * max(1.0, _slowness())
        found = (file for file, seconds in self._files.items() if seconds > most)
        return [file for file in found if file not in self._long]

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the table, and keep it if asked to."""
        if len(self._files) < 2:
            return
        rows = [f"{seconds:6.0f} s  {file}" for file, seconds in self._files.most_common(SHOWN)]
        more = len(self._files) - len(rows)
        total = f"{sum(self._files.values()):6.0f} s  in all, {more} more files among it"
        terminalreporter.section("processor time")
        terminalreporter.write_line("\n".join([*rows, total]))
        for file in self.too_long():
            terminalreporter.write_line(
                f"tests/{file}.py takes more than {MOST:.0f} s on a machine of today: make it "
                "lighter, let its tests take turns (mark in_turn), or name it in conftest.LONG",
                red=True,
            )
        if config.getoption("--keep-times"):
            keep(PAGE, "times", self._table())

    def _table(self) -> str:
        lines = ["| seconds of processor time | tests |", "|--:|---|"]
        for file, seconds in self._files.most_common(SHOWN):
            lines.append(f"| {seconds:.0f} | `tests/{file}.py` |")
        return "\n".join([*lines, f"| **{sum(self._files.values()):.0f}** | all |", ""])


@functools.cache
def _slowness() -> float:
    """Return how much longer than a machine of today this one takes to add."""
    start, total = time.process_time(), 0
    for number in range(COUNTED):
        total += number
    return (time.process_time() - start) / COUNTS_IN
