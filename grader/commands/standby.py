"""`grader standby`: a process that makes the checks for a notebook. Notebooks start it.

Python, torch and the processes for student code take two seconds to start; a check takes some
tenths of a second. So a notebook starts them once, while the student writes the first cells.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from grader.commands import work
from grader.commands.options import LIST_VARIABLE, exit_code, progress_bar
from grader.commands.standby_process import END_OF_ERRORS, CheckAnswer, CheckOrder
from grader.commands.tour import led, told
from grader.commands.trusted_courses import recognised
from grader.course.bundle import drop_key
from grader.course.course import load_course
from grader.printing import behind_filter
from grader.reports import pages, render
from grader.sandbox.host.source import WorkerSource
from grader.submissions.notes import quoted

IDLE_SECONDS = 600.0  # seconds; it holds hundreds of megabytes while it waits


@click.command(hidden=True)
def standby() -> int:
    """Start the processes for checks, then check on every order.

    An order is a line of JSON on standard input, its answer a line on standard output. Ends
    silently if no order comes within ten minutes, or if the notebook ends; ends with an error if a
    check is not possible.
    """
    drop_key()  # removed, so that no later import finds it
    with work.starting("process", again=True) as source:
        source.start()
        import grader.grading.grader  # noqa: F401, PLC0415, while other processes import torch, too

        for line in _lines():
            # So that no output of a suite is taken for an answer.
            with contextlib.redirect_stdout(sys.stderr):
                answer = _answer(msgspec.json.decode(line, type=CheckOrder), source)
            click.echo(END_OF_ERRORS, nl=False, file=behind_filter(sys.stderr))
            click.echo(msgspec.json.encode(answer), file=behind_filter(sys.stdout))
    return 0


def _answer(order: CheckOrder, source: WorkerSource) -> CheckAnswer:
    course = recognised(replace(load_course(Path(order.root)), trusted=False))
    course = course.choose(os.environ.get(LIST_VARIABLE))
    notebook = Path(order.notebook)
    request = work.parse_targets([str(notebook.parent), order.exercise], course)
    notes = tuple(_in_kernel(request.submission.notes, notebook))
    request = replace(request, submission=replace(request.submission, notes=notes))
    with progress_bar(1) as on_exercise:
        if order.tour:
            stages = led(request, course[order.exercise], source, on_exercise)
            Path(order.page).write_text(pages.tour(stages), "utf-8")
            return CheckAnswer(0, told(stages))
        report = work.check(request, source, order.seed, on_exercise)
    Path(order.page).write_text(render(report, "html"), "utf-8")
    return CheckAnswer(exit_code(report), click.unstyle(render(report, "text")))


def _in_kernel(notes: Iterable[str], notebook: Path) -> Iterator[str]:
    """Yield notes without the file of a kernel's cells, which only the notebook has written."""
    for note in notes:
        if not note.startswith(f"{quoted(notebook.name)} was used for "):
            yield note.removeprefix(f"{quoted(str(notebook))}: ")


def _lines() -> Iterator[str]:
    """Yield the lines of standard input until it ends, or until none comes in time."""
    lines = queue.SimpleQueue[str]()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    # In a thread, because not every system can interrupt a read in the main thread.
    threading.Thread(target=read, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        yield from iter(lambda: lines.get(timeout=IDLE_SECONDS), "")
