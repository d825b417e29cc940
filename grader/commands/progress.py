"""How far a batch is: a bar on a terminal, a line now and then elsewhere, JSON lines in a file."""

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

from grader.classroom.run import Event
from grader.report import Report

EVERY = 5.0  # seconds between two lines where there is no terminal
NAMED = 3  # of those who are graded now


class Meter:
    """Told of every event of a run. `verdict` makes the line for a report; none are shown if None.

    Counted are the reports out of a `total`; where there is none, submissions as they are graded.
    The clock starts when the first is handed out, and is set once it has been graded, so that
    warming up is no rate.
    """

    def __init__(
        self,
        total: int | None,
        verdict: Callable[[Report], str] | None,
        log: IO[str] | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.done = total, 0
        self._verdict, self._log, self._now = verdict, log, now
        self._running: dict[str, tuple[str, ...]] = {}
        self._started: float | None = None
        self._is_warm = False
        self._fresh = 0
        self._line_at = now() + EVERY
        self._progress: Any = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[Meter]:
        """The bar stands on the terminal for as long as the block lasts."""
        if not sys.stderr.isatty():
            yield self
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            BarColumn(bar_width=24), TextColumn("{task.description}"), console=console,
            transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._progress.add_task("warming up", total=self.total)
        with self._progress:
            yield self
        self._progress = None

    def told(self, event: Event) -> None:
        """Take note of an event, and show it."""
        if event.kind == "started":
            self._started = self._now() if self._started is None else self._started
            self._running[event.student] = event.names
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
        if event.kind in ("lost", "gave up"):
            what = f"{event.student} ({', '.join(event.names)})"
            self._say(f"{what}: {event.why}; {_NEXT[event.kind]}")
        self._note(event)
        self._show()

    def _note(self, event: Event) -> None:
        if self._log is None:
            return
        entry: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event.kind,
            "student": event.student,
        }
        if event.names:
            entry["exercises"] = event.names
        if event.seconds:
            entry["seconds"] = round(event.seconds, 4)
        if event.why:
            entry["why"] = event.why
        if event.report is not None and event.report.mark is not None:
            entry |= {"points": event.report.mark.points, "flags": event.report.flags}
        self._log.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._log.flush()

    def line(self) -> str:
        """How far it is, in one line."""
        done = f"{self.done} graded" if self.total is None else f"{self.done} of {self.total}"
        if self._started is None:
            return f"{done}, warming up"
        spent = max(self._now() - self._started, 1e-6)
        rate = self._fresh / spent
        left = ""
        if self._fresh and self.total is not None:
            left = f", {_time((self.total - self.done) / rate)} left"
        names = list(self._running)[:NAMED]
        now = f" · now {', '.join(names)}" if names else ""
        return f"{done} · {rate:.1f} a second{left}{now}"

    def _show(self) -> None:
        if self._progress is not None:
            self._progress.update(0, completed=self.done, description=self.line())
        elif self._now() >= self._line_at:
            self._line_at = self._now() + EVERY
            self._say(self.line())

    def _print(self, line: str) -> None:
        """Print a line; when nobody reads on, as behind `| head`, grading goes on all the same."""
        if self._progress is not None and sys.stdout.isatty():
            self._above(line)
            return
        try:
            click.echo(line)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._above(f"  {text}")
        else:
            click.echo(f"  {text}", err=True)

    def _above(self, line: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


_NEXT = {
    "lost": "trying again, one exercise at a time",
    "gave up": "left to a person, and the others go on",
}


def _time(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
