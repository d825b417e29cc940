"""`grader standby`: a check that has started before anybody asks for it. Notebooks start it.

Python, torch and the processes for student code take two seconds to start, the check of an exercise
some tenths of one. So a notebook starts the next check while its cells are written.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from pathlib import Path

import click
import msgspec

from grader.commands import work
from grader.commands.options import LIST_VARIABLE, exit_code, progress_bar
from grader.commands.standby_process import CheckOrder
from grader.course.bundle import KEY_VARIABLE
from grader.course.course import load_course
from grader.reports import render

IDLE_SECONDS = 600.0  # it holds some hundred megabytes while it waits


@click.command(hidden=True)
def standby() -> int:
    """Start what a check needs, wait for an order, and check.

    The order is a line of JSON on standard input. Ends without a word if none comes within ten
    minutes, or if the notebook ends that would give it.
    """
    os.environ.pop(KEY_VARIABLE, None)  # nothing that is loaded later may find the key
    with work.starting("process") as source:
        source.start()
        import grader.grading.grader  # noqa: F401, PLC0415, while other processes import torch, too

        line = _next_line()
        if not line:
            return 0
        order = msgspec.json.decode(line, type=CheckOrder)
        course = load_course(Path(order.root)).choose(os.environ.get(LIST_VARIABLE))
        request = work.parse_targets([order.folder, order.exercise], course)
        with progress_bar(1) as on_exercise:
            report = work.check(request, source, order.seed, on_exercise)
    Path(order.page).write_text(render(report, "html"), "utf-8")
    click.echo(render(report, "text"), nl=False)
    return exit_code(report)


def _next_line() -> str:
    """Return a line of standard input; an empty one if none comes in time."""
    lines = queue.SimpleQueue[str]()
    # Not every system can end a read of the main thread.
    threading.Thread(target=lambda: lines.put(sys.stdin.readline()), daemon=True).start()
    try:
        return lines.get(timeout=IDLE_SECONDS)
    except queue.Empty:
        return ""
