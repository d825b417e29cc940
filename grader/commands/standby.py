"""`grader standby`: a process that checks whatever a notebook orders. Notebooks start it.

Python, torch and the processes for student code take two seconds to start, the check of an exercise
some tenths of one. So a notebook starts them once, while its first cells are written.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from grader.commands import work
from grader.commands.options import LIST_VARIABLE, exit_code, progress_bar
from grader.commands.standby_process import END_OF_ERRORS, CheckAnswer, CheckOrder
from grader.commands.trusted_courses import recognised
from grader.course.bundle import KEY_VARIABLE
from grader.course.course import load_course
from grader.reports import render
from grader.sandbox.host.source import WorkerSource

IDLE_SECONDS = 600.0  # it holds some hundred megabytes while it waits


@click.command(hidden=True)
def standby() -> int:
    """Start what a check needs, then check what is ordered, again and again.

    An order is a line of JSON on standard input, and its answer one on standard output. Ends
    without a word if no order comes within ten minutes, or if the notebook ends that would give it;
    with an error if something ordered cannot be checked.
    """
    os.environ.pop(KEY_VARIABLE, None)  # nothing that is loaded later may find the key
    with work.starting("process", again=True) as source:
        source.start()
        import grader.grading.grader  # noqa: F401, PLC0415, while other processes import torch, too

        for line in _lines():
            # What a suite prints is no answer.
            with contextlib.redirect_stdout(sys.stderr):
                answer = _answer(msgspec.json.decode(line, type=CheckOrder), source)
            click.echo(END_OF_ERRORS, nl=False, err=True)
            click.echo(msgspec.json.encode(answer))
    return 0


def _answer(order: CheckOrder, source: WorkerSource) -> CheckAnswer:
    course = recognised(replace(load_course(Path(order.root)), trusted=False))
    course = course.choose(os.environ.get(LIST_VARIABLE))
    request = work.parse_targets([order.folder, order.exercise], course)
    with progress_bar(1) as on_exercise:
        report = work.check(request, source, order.seed, on_exercise)
    Path(order.page).write_text(render(report, "html"), "utf-8")
    return CheckAnswer(exit_code(report), click.unstyle(render(report, "text")))


def _lines() -> Iterator[str]:
    """Yield the lines of standard input until it ends, or until none comes in time."""
    lines = queue.SimpleQueue[str]()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    # Not every system can end a read of the main thread.
    threading.Thread(target=read, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        yield from iter(lambda: lines.get(timeout=IDLE_SECONDS), "")
