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
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import keep  # noqa: E402
from peers.measure import machine, measured  # noqa: E402

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


def cost_of(course: Course, names: Sequence[str], count: int, *chosen: str) -> Cost:
    """Grade the exercises `names` for so many students; exit if one of them loses a point."""
    with tempfile.TemporaryDirectory() as folder:
        hand_in(Path(folder, "class"), course, count)
        batch = [sys.executable, "-W", "ignore", "-m", "grader", "batch", f"{folder}/class"]
        command = [*batch, "--out", f"{folder}/out", "--jobs", "2", *chosen]
        usage = measured(command, cwd=ROOT, log=Path(folder, "log"), fine=(0, 1))
        wanted = {name: course[name].points for name in names}
        for student in range(1, count + 1):
            report = Path(folder, "out", "reports", f"s{student:03}.json").read_text("utf-8")
            earned = {each["name"]: each["points"] for each in json.loads(report)["exercises"]}
            if {name: earned.get(name) for name in names} != wanted:
                raise SystemExit(f"a reference solution loses points: {earned}")
    return Cost(usage.cpu, usage.wall)


def row(what: str, course: Course, names: Sequence[str], count: int, *chosen: str) -> str:
    """Return the line of the table for the exercises `names`, which the options choose."""
    few, many = (cost_of(course, names, each, *chosen) for each in (FEW, count))
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
    rest = [name for name in full.names if name not in training]
    listed, core = ("--course-list", "full"), course.choose("core")
    without_it = f"the full course without training, {len(rest)}"
    return [
        row(f"the core, {len(core.names)}", core, core.names, students, "--course-list", "core"),
        row(without_it, full, rest, students, *listed, *without),
        row(f"those that train, {len(training)}", full, training, trained, *listed, *only),
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
