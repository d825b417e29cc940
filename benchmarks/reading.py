"""What it costs that a confined reader reads each submission, and not the process that grades.

    python benchmarks/reading.py    a few seconds

The same class of folders with seven files each is read in turns in this process, by a new reader
for each attempt, as attempts with notebooks or zips are, by one reader for all, and as `grader
batch` reads it: by two readers at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.classroom.intake import Intake, SelectedAttempt
from grader.course.course import Course, load_course
from grader.submissions.layouts import collect, find_attempts
from grader.submissions.layouts.collection import read_attempt
from grader.submissions.reader.host import readers
from grader.submissions.reader.template import ReaderTemplate

ROOT = Path(__file__).parent.parent
STUDENTS, ROUNDS = 20, 15


def _milliseconds(action: Callable[[], object]) -> float:
    """Return how long an action takes for one student of the class."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start) / STUDENTS


def _cpu_seconds() -> float:
    """Return the CPU time of this process, the template process and all its readers so far."""
    source = readers()
    assert isinstance(source, ReaderTemplate)
    template = Path(f"/proc/{source.pid}")
    while True:
        fields = (template / "stat").read_text().rpartition(")")[2].split()
        alive = (template / "task" / template.name / "children").read_text().split()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a reader ends meanwhile
            texts = [Path(f"/proc/{pid}/schedstat").read_text() for pid in alive]
            nanoseconds = sum(int(text.split()[0]) for text in texts)
            ended = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            return time.process_time() + ended + nanoseconds / 1e9


def _hand_in(folder: Path, course: Course) -> None:
    for number in range(STUDENTS):
        own = folder / f"s{number:03}"
        own.mkdir()
        for exercise in course.names:
            (own / f"{exercise}.py").write_text(course[exercise].read("solution.py"))


def main() -> None:
    """Print the medians of all rounds, and the smallest of each."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    course = load_course(ROOT).choose("core")
    with TemporaryDirectory() as name:
        _hand_in(Path(name), course)
        attempts = find_attempts(Path(name), course).attempts
        intake = Intake("", tuple(SelectedAttempt(one, True) for one in attempts), (), ())
        ways: dict[str, Callable[[], object]] = {
            "in this process": lambda: [read_attempt(one, course) for one in attempts],
            "a reader for each": lambda: [
                collect(replace(one, root=None), course) for one in attempts
            ],
            "one reader": lambda: [collect(one, course) for one in attempts],
            "two readers": lambda: list(intake.read(course)),
        }
        ways["one reader"]()  # starts the template process
        times: dict[str, list[float]] = {way: [] for way in ways}
        cpu = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            for way, action in ways.items():
                before = _cpu_seconds()
                times[way].append(_milliseconds(action))
                cpu[way] += 1000 * (_cpu_seconds() - before) / (ROUNDS * STUDENTS)
    for way, each in times.items():
        middle, least = statistics.median(each), min(each)
        print(f"{way:17} {middle:6.2f} ms a submission, at least {least:.2f}", end="")
        print(f"; {cpu[way]:.2f} ms of CPU")
    here, confined = (statistics.median(times[way]) for way in ("in this process", "two readers"))
    more_cpu = cpu["two readers"] - cpu["in this process"]
    print(f"{'more':17} {confined - here:6.2f} ms, {confined / here:.1f} times", end="")
    print(f"; {more_cpu:.2f} ms of CPU, which other work on this machine changes less")


if __name__ == "__main__":
    main()
