"""What it costs that a confined reader reads each submission, and not the process that grades.

    python benchmarks/reading.py    a few seconds

The same folder of exercise files is read in turns by a reader and in this process.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.course.course import load_course
from grader.submissions.layouts import collect, find_attempts
from grader.submissions.layouts.collection import read_attempt
from grader.submissions.reader.host import readers

ROOT = Path(__file__).parent.parent
STUDENTS, ROUNDS = 20, 15


def milliseconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def _cpu_seconds() -> float:
    """Return the CPU time of the template process and of all its readers so far."""
    fields = Path(f"/proc/{readers().pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the medians, and the smallest of each."""
    course = load_course(ROOT)
    with TemporaryDirectory() as name:
        for number in range(STUDENTS):
            folder = Path(name, f"s{number:03}")
            folder.mkdir()
            for exercise in course.names:
                (folder / f"{exercise}.py").write_text(course[exercise].read("solution.py"))
        attempts = find_attempts(Path(name), course).attempts
        collect(attempts[0], course)  # starts the template process
        here, there, before = [], [], _cpu_seconds()
        for _ in range(ROUNDS):
            for attempt in attempts:
                here.append(milliseconds(lambda one=attempt: read_attempt(one, course)))
                there.append(milliseconds(lambda one=attempt: collect(one, course)))
        cpu = 1000 * (_cpu_seconds() - before) / len(there)
    for label, times in (("in this process", here), ("by a reader", there)):
        middle, least = statistics.median(times), min(times)
        print(f"{label:16} {middle:6.2f} ms a submission, at least {least:.2f}")
    print(f"{'more':16} {statistics.median(there) - statistics.median(here):6.2f} ms")
    print(f"{'CPU of readers':16} {cpu:6.2f} ms a submission, with the template process")


if __name__ == "__main__":
    main()
