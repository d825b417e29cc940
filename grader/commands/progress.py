"""The progress of a run: a bar on a terminal, else a line every few seconds; and a JSON log."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from grader.classroom.run import Event
from grader.report import Report

EVERY = 5.0  # seconds between two lines where there is no terminal
MAX_NAMED = 3  # students whose work is being graded now
NEXT = {"lost": "trying again, one exercise at a time", "gave up": "needs review; the others go on"}


class ProgressDisplay:
    """Shows every event of a run. `verdict` makes the line for a report; None prints no lines.

    `named` puts a name beside a student's id.

    With a `total` it counts published reports, otherwise graded submissions. The rate excludes the
    time to warm up: the clock starts at the first job and is corrected when that is graded.
    """

    def __init__(
        self,
        total: int | None,
        verdict: Callable[[Report], str] | None,
        log: IO[str] | None,
        now: Callable[[], float] = time.monotonic,
        named: Callable[[str], str] = str,
    ) -> None:
        self.total, self.done = total, 0
        self._verdict, self._log, self._now, self._named = verdict, log, now, named
        self._running: dict[str, None] = {}  # students, in the order of their start
        self._started: float | None = None
        self._is_warm = False
        self._fresh = 0
        self._line_at = now() + EVERY
        self._progress: Any = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar in the block, if the error stream is a terminal."""
        if not sys.stderr.isatty():
            yield
            return
        console = Console(stderr=True, highlight=False)
        columns = BarColumn(bar_width=24), TextColumn("{task.description}")
        self._progress = Progress(
            *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._progress.add_task("warming up", total=self.total)
        with self._progress:
            yield
        self._progress = None

    def show(self, event: Event) -> None:
        """Count an event, show it, and write it to the log."""
        if event.kind == "started":
            self._started = self._now() if self._started is None else self._started
            self._running[event.student] = None
        elif event.kind != "published":
            self._running.pop(event.student, None)
        if event.kind == ("graded" if self.total is None else "published"):
            self.done += 1
            self._fresh += self._started is not None
        if event.kind == "graded" and not self._is_warm and self._started is not None:
            self._is_warm = True
            self._started = max(self._started, self._now() - event.seconds)
        if event.kind == "published" and self._verdict is not None and event.report is not None:
            self._print(self._verdict(event.report))
        if event.kind in NEXT:
            names = ", ".join(event.names)
            who = self._named(event.student)
            self._say(f"{who} ({names}): {event.why}; {NEXT[event.kind]}")
        self._write_log(event)
        self._refresh()

    def _write_log(self, event: Event) -> None:
        if self._log is None:
            return
        what = {"exercises": event.names, "seconds": round(event.seconds, 4), "why": event.why}
        entry: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event.kind,
            "student": event.student,
            **{key: value for key, value in what.items() if value},
        }
        if event.report is not None and event.report.mark is not None:
            entry |= {"points": event.report.mark.points, "flags": event.report.flags}
        self._log.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._log.flush()

    def line(self) -> str:
        """Return the progress in one line."""
        done = f"{self.done} graded" if self.total is None else f"{self.done} of {self.total}"
        if self._started is None:
            return f"{done}, warming up"
        rate = self._fresh / max(self._now() - self._started, 1e-6)
        left = ""
        if self._fresh and self.total is not None:
            left = f", {_time((self.total - self.done) / rate)} left"
        now = f" · now {', '.join(list(self._running)[:MAX_NAMED])}" if self._running else ""
        return f"{done} · {rate:.1f} a second{left}{now}"

    def _refresh(self) -> None:
        if self._progress is not None:
            self._progress.update(0, completed=self.done, description=self.line())
        elif self._now() >= self._line_at:
            self._line_at = self._now() + EVERY
            self._say(self.line())

    def _print(self, line: str) -> None:
        """Print a line; grading goes on if nobody reads the output (`| head`, a full disk)."""
        if self._progress is not None and sys.stdout.isatty():
            self._above(line)
            return
        try:
            click.echo(line)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._above(f"  {text}")
        else:
            with contextlib.suppress(OSError):
                click.echo(f"  {text}", err=True)

    def _above(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
