"""`make seeds`: whether a verdict depends on the seed, by which a submission's inputs are drawn.

    python tests/corpus/seeds.py [--every N] [--only EXERCISE] [--names]

Each reference and each program of the sets right and public that earns all points has to earn them
with 200 seeds, also with softmaxes in float32, and each mistake of the catalogue has to lose points with 50. `--every N` tries each
N-th program. A mistake that can be named with one seed of the cases has to be nameable with 20;
`--names` tries this alone. The exit code is 1 if something depends on the seed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from corpus.programs import in_float32, load  # noqa: E402
from corpus.verdicts import SEED  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402
from grader.course.known_mistakes import load_mistakes  # noqa: E402
from grader.grading.session import with_grader  # noqa: E402
from grader.report import Outcome  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

if TYPE_CHECKING:
    from grader.grading.grader import Grader

RIGHT, WRONG = 200, 50  # seeds; a tenth where a model is trained
NAMED = 20  # seeds of the cases
PROCESSES = 2


@dataclass(frozen=True)
class Program:
    """A solution of one exercise that has to earn all points, or has to lose some."""

    exercise: str
    name: str
    text: str
    is_right: bool
    trains: bool

    @property
    def seeds(self) -> range:
        """The seeds that it is tried with."""
        number = RIGHT if self.is_right else WRONG
        return range(SEED, SEED + (number // 10 if self.trains else number))


def programs(course: Course) -> Iterator[Program]:
    """Yield the references, the corpus of right programs, and every mistake of the catalogue."""
    for exercise in course.exercises:
        solution, trains = exercise.read("solution.py"), exercise.training is not None
        yield Program(exercise.name, "reference", solution, True, trains)
        yield Program(exercise.name, "in float32", in_float32(solution), True, trains)
        for fault in load_mistakes(exercise):
            yield Program(exercise.name, fault.name, fault.apply(solution), False, trains)
    for each in load("right", "public"):
        trains = course[each.exercise].training is not None
        name = f"{each.set}/{each.name}"
        yield Program(each.exercise, name, each.text, True, trains)
        yield Program(each.exercise, f"{name} in float32", in_float32(each.text), True, trains)


def failures(chosen: list[Program]) -> list[str]:
    """Return a line for each program whose points depend on the seed."""
    course = load_course(ROOT)

    def body(grader: Grader) -> list[str]:
        return [line for each in chosen if (line := _failure(grader, each))]

    return with_grader(course, course.names, None, body)


def _failure(grader: Grader, program: Program) -> str:
    full = grader.course[program.exercise].points
    wrong: dict[int, int] = {}  # points by seed
    telling: list[str] = []  # the first check that a wrong program failed; it mostly fails again
    runs = _Runs(grader, program)
    for seed in program.seeds:
        if telling and any(outcome.is_wrong for outcome in runs.run(seed, telling)):
            continue
        outcomes = runs.run(seed)
        points = sum(outcome.points for outcome in outcomes)
        if program.is_right and points != full and seed == program.seeds[0]:
            return ""  # accuracy.py tells what it loses
        if (points == full) != program.is_right:
            wrong[seed] = points
        if not program.is_right:
            telling = [outcome.name for outcome in outcomes if outcome.is_wrong][:1]
    if not wrong:
        return ""
    shown = ", ".join(f"{points}/{full} with {seed}" for seed, points in list(wrong.items())[:5])
    return f"{program.exercise} {program.name}: {len(wrong)} of {len(program.seeds)} seeds: {shown}"


class _Runs:
    """A program with which the hidden suite is run with one seed after another."""

    def __init__(self, grader: Grader, program: Program) -> None:
        self._grader, self._exercise = grader, program.exercise
        course = grader.course
        files = {name: course[name].read("solution.py") for name in course.names}
        self._submission = Submission("s001", {**files, program.exercise: program.text})

    def run(self, seed: int, only: Collection[str] = ()) -> tuple[Outcome, ...]:
        """Return the outcomes of the checks, or `only` of those with these names."""
        with self._grader.examining(self._submission, seed, [self._exercise]) as examiner:
            return self._grader.suite.run(examiner, self._exercise, only)


def unnamed(exercise: str) -> list[str]:
    """Return a line for each form of a mistake that can be named with some seeds alone."""
    from grader.grading.diagnosis.computed import ComputedCatalogue

    course = load_course(ROOT)
    seeds = range(SEED, SEED + NAMED)
    named: dict[tuple[str, int], set[int]] = {}
    for seed in seeds:
        catalogue = ComputedCatalogue(course, course[exercise], seed)
        for fault in load_mistakes(course[exercise]):
            for number, form in enumerate(fault.programs(fault.number), 1):
                able = named.setdefault((fault.name, number), set())
                able.update([seed] if catalogue.can_name(fault, form) else [])
    return [
        f"{exercise} {fault}, form {number}: cannot be named with {NAMED - len(able)} of {NAMED}"
        f" seeds: {', '.join(map(str, [seed for seed in seeds if seed not in able][:5]))}"
        for (fault, number), able in named.items()
        if 0 < len(able) < NAMED
    ]


def main() -> int:
    """Try all; return 0 if no verdict depends on the seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th program")
    parser.add_argument("--only", metavar="EXERCISE", help="only programs of one exercise")
    parser.add_argument("--names", action="store_true", help="only whether mistakes can be named")
    arguments = parser.parse_args()
    course = load_course(ROOT)
    names = [name for name in course.names if arguments.only in (None, name)]
    found = [] if arguments.names else list(programs(course))[:: arguments.every]
    found = [each for each in found if each.exercise in names]
    # Right programs stand together and take far longer, so each part has its share of them.
    number = -(-len(found) // 10)
    parts = [found[start::number] for start in range(number)]
    lines: list[str] = []
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=fresh) as pool:
        jobs = [pool.submit(unnamed, name) for name in names]
        jobs += [pool.submit(failures, part) for part in parts]
        for done, job in enumerate(as_completed(jobs), 1):
            lines += job.result()
            print(f"{done:4} of {len(jobs)} parts, {len(lines)} depend on it", flush=True)
            print("".join(f"  {line}\n" for line in job.result()), end="", flush=True)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
