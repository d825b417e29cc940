"""Measure what the full course costs a class, with the exercises that train and without them.

    python benchmarks/full_course.py [--students 20] [--trained 6] [--write]

Each row is two runs of `grader batch --jobs 2`, over a small class and a larger one, so that the
start can be told from what one more student adds. Everybody hands in other reference solutions:
the same but for one line of code, so that nothing is kept from one student for the next. The CPU
seconds and the time of a class of 200 are computed from the two runs. `--write` puts the table into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import keep  # noqa: E402
from peers.measure import machine  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
CLASS = 200
FEW = 2  # students of the small class


@dataclass(frozen=True)
class Cost:
    """The CPU seconds and the seconds that something takes."""

    cpu: float
    wall: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.cpu - other.cpu, self.wall - other.wall)

    def times(self, factor: float) -> Cost:
        """Return the cost of so many."""
        return Cost(self.cpu * factor, self.wall * factor)


def hand_in(folder: Path, course: Course, count: int) -> None:
    """Write the submissions of a class."""
    for number in range(1, count + 1):
        student = folder / f"s{number:03}"
        student.mkdir(parents=True)
        for name in course.names:
            own = f"\n_STUDENT = {number}\n"
            (student / f"{name}.py").write_text(course[name].read("solution.py") + own, "utf-8")


def cost_of(course: Course, count: int, *chosen: str) -> Cost:
    """Grade a class of so many students; exit with an error if one of them loses a point."""
    with tempfile.TemporaryDirectory() as folder:
        hand_in(Path(folder, "class"), course, count)
        batch = [sys.executable, "-W", "ignore", "-m", "grader", "batch", f"{folder}/class"]
        command = [*batch, "--out", f"{folder}/out", "--jobs", "2", *chosen]
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(chosen)}: a reference solution loses points, or worse")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


def row(what: str, course: Course, count: int, *chosen: str) -> str:
    """Return the line of the table for the exercises that the options choose."""
    few, many = (cost_of(course, each, *chosen) for each in (FEW, count))
    each = (many - few).times(1 / (count - FEW))
    whole = each.times(CLASS - count)
    return (
        f"| {what} | {each.cpu:.1f} s | {each.wall:.1f} s | {count} "
        f"| {(many.cpu + whole.cpu) / 60:.0f} min | {(many.wall + whole.wall) / 60:.0f} min |"
    )


def rows(students: int, trained: int) -> Sequence[str]:
    """Return the lines of the table."""
    course = load_course(ROOT)
    full = course.choose("full")
    training = [exercise.name for exercise in full.exercises if exercise.training]
    only = [part for name in training for part in ("--only", name)]
    without = [part for name in training for part in ("--without", name)]
    rest = len(full.names) - len(training)
    listed = ("--course-list", "full")
    core = course.choose("core")
    return [
        row(f"the core, {len(core.names)} exercises", core, students, "--course-list", "core"),
        row(f"the full course without training, {rest}", full, students, *listed, *without),
        row(f"those that train, {len(training)}", full, trained, *listed, *only),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=20, help="where nothing is trained")
    parser.add_argument("--trained", type=int, default=6, help="where something is")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    head = [
        f"{machine()}; Python {sys.version.split()[0]}.",
        "",
        f"| exercises | CPU a student | time a student | students | CPU for {CLASS} | time |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    table = "\n".join([*head, *rows(options.students, options.trained), ""])
    print(table)
    if options.write:
        keep(PAGE, "full-course", table)


if __name__ == "__main__":
    main()
