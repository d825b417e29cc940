"""`make margins`: how far the references that train are from what is asked of them.

    python tests/corpus/margins.py [--seeds N] [--only EXERCISE] [--write]

Each reference is trained with 20 seeds. The table has the worst, the middle and the best of what it
reaches, and what it takes; `--write` puts it into `docs/suites.md`. The exit code is 1 if a
reference fails a check.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from pages import keep, part  # noqa: E402

from grader.course.course import Course, Exercise, load_course  # noqa: E402
from grader.grading.session import with_grader  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

if TYPE_CHECKING:
    from grader.grading.grader import Grader

SEEDS = 20
PAGE = ROOT / "docs" / "suites.md"
HEAD = (
    "| exercise | what is reached | asked for | worst | median | best | seconds |\n"
    "|---|---|--:|--:|--:|--:|--:|\n"
)


@dataclass
class Margins:
    """What the reference of an exercise reaches with each seed, and the seconds that it takes."""

    exercise: str
    limits: dict[str, tuple[float, bool]] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield a line of the table for each thing that is reached."""
        for what, values in self.values.items():
            limit, is_least = self.limits[what]
            ordered = sorted(values, reverse=not is_least)
            shown = (ordered[0], statistics.median(ordered), ordered[-1])
            numbers = " | ".join(f"{value:.4g}" for value in shown)
            bound = f"{'≥' if is_least else '≤'} {limit:g}"
            seconds = f"{statistics.median(self.seconds):.0f}"
            yield f"| `{self.exercise}` | {what} | {bound} | {numbers} | {seconds} |"


def margins_of(course: Course, exercise: Exercise, seeds: int) -> Margins:
    """Grade the reference of an exercise with each seed."""
    margins = Margins(exercise.name)
    files = {name: course[name].read("solution.py") for name in course.names}
    submission = Submission("s001", files)

    def body(grader: Grader) -> None:
        for seed in range(seeds):
            start = time.perf_counter()
            (result,) = grader.grade(submission, [exercise.name], seed).results
            margins.seconds.append(time.perf_counter() - start)
            if not result.passed:
                margins.failed.append(seed)
                for test in result.tests:
                    if test.is_wrong:
                        print(f"  {test.name}: {test.message}")
            for reached in (each for curve in result.curves for each in curve.reached):
                margins.limits[reached.what] = reached.limit, reached.is_least
                margins.values.setdefault(reached.what, []).append(reached.value)
            print(f"{exercise.name}, seed {seed}: {margins.seconds[-1]:.1f} s", flush=True)

    with_grader(course, [exercise.name], None, body)
    return margins


def main() -> int:
    """Train every reference; return 0 if each passes with every seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--only", metavar="EXERCISE", help="only this one")
    parser.add_argument("--write", action="store_true", help="write the table into docs/suites.md")
    arguments = parser.parse_args()
    course = load_course(ROOT)
    found = [
        margins_of(course, exercise, arguments.seeds)
        for exercise in course.exercises
        if exercise.training and arguments.only in (None, exercise.name)
    ]
    lines = {each.exercise: list(each.lines()) for each in found}
    if arguments.write:
        kept = [
            line
            for line in part(PAGE, "margins").splitlines()
            if line.startswith("| `") and line.split("`")[1] not in lines
        ]
        order = {name: place for place, name in enumerate(course.names)}
        rows = [*kept, *(line for each in lines.values() for line in each)]
        rows.sort(key=lambda line: order[line.split("`")[1]])
        table = HEAD + "".join(f"{row}\n" for row in rows)
        keep(PAGE, "margins", table)
    print(HEAD + "".join(f"{line}\n" for each in lines.values() for line in each))
    failed = {each.exercise: each.failed for each in found if each.failed}
    print(f"failed: {failed or 'none'}; {_cpu():.0f} s of processor time in all")
    return 1 if failed else 0


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    sys.exit(main())
