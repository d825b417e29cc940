"""How far a batch is: a bar on a terminal, a line now and then elsewhere, JSON lines in a file."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import IO, Any

import click

from grader.batch import Event
from grader.records import Report

EVERY = 5.0  # seconds between two lines where there is no terminal
NAMED = 3  # of those who are graded now


class Meter:
    """Told of every event of a run. `verdict` makes the line for a report; none are shown if None.

    The clock starts with the first submission that is handed out: warming up is no rate.
    """

    def __init__(
        self,
        total: int,
        verdict: Callable[[Report], str] | None,
        log: IO[str] | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.done = total, 0
        self._verdict, self._log, self._now = verdict, log, now
        self._running: dict[str, tuple[str, ...]] = {}
        self._started: float | None = None
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
            transient=True, redirect_stdout=sys.stdout.isatty(),
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
        elif event.kind == "published":
            self.done += 1
            self._fresh += self._started is not None
            if self._verdict is not None and event.report is not None:
                click.echo(self._verdict(event.report))
        else:
            self._running.pop(event.student, None)
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
        if self._started is None:
            return f"{self.done} of {self.total}, warming up"
        spent = max(self._now() - self._started, 1e-6)
        rate = self._fresh / spent
        left = f", {_time((self.total - self.done) / rate)} left" if self._fresh else ""
        names = list(self._running)[:NAMED]
        now = f" · now {', '.join(names)}" if names else ""
        return f"{self.done} of {self.total} · {rate:.1f} a second{left}{now}"

    def _show(self) -> None:
        if self._progress is not None:
            self._progress.update(0, completed=self.done, description=self.line())
        elif self._now() >= self._line_at:
            self._line_at = self._now() + EVERY
            self._say(self.line())

    def _say(self, text: str) -> None:
        click.echo(f"  {text}", err=True)


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
