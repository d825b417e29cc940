"""How a students' copy compares with the hidden suites on programs of others.

    python tests/corpus/copies.py [--write]

Grades every program of the corpus in both, prints a table, and with `--write` keeps it in
docs/diagnosis.md. The exit code is 1 if an aim is missed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from corpus.accuracy import Program, explanations, load  # noqa: E402
from pages import keep  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.session import with_grader  # noqa: E402
from grader.report import ExerciseResult  # noqa: E402
from grader.sandbox.host.zygote import Zygote  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

if TYPE_CHECKING:
    from grader.grading.grader import Grader

WRONG = ("known", "outside", "broken")
AIM = 0.95  # the share of wrong programs that are named alike
SEED = 7

Graded = Mapping[Program, ExerciseResult]


def students_copy(course: Course, folder: Path) -> Course:
    """Return what students have of a course, in a folder: nothing of the teaching team's."""
    shutil.copytree(course.student_folder, folder / "exercises")
    return load_course(folder)


def grade(course: Course, programs: Sequence[Program], correct: Mapping[str, str], zygote: Zygote) -> Graded:
    """Grade programs in a course; the other exercises of each submission are correct."""

    def body(grader: Grader) -> Graded:
        found = {}
        for program in programs:
            submission = Submission("s001", {**correct, program.exercise: program.text})
            (found[program],) = grader.grade(submission, [program.exercise], SEED).results
        return found

    return with_grader(course, course.names, zygote, body, keep_answers=True)


def is_right(result: ExerciseResult) -> bool:
    """Return whether hidden suites give all points, or a students' copy calls a program done."""
    return result.passed and not result.given_back


def differently_named(here: Graded, there: Graded) -> list[Program]:
    """Return the wrong programs that are not named alike in both."""
    wrong = (program for program in here if program.set in WRONG)
    return [p for p in wrong if set(explanations(here[p])) != set(explanations(there[p]))]


def differently_judged(here: Graded, there: Graded) -> list[Program]:
    """Return the programs that are right in one and wrong in the other."""
    return [program for program in here if is_right(here[program]) != is_right(there[program])]


def rows(here: Graded, there: Graded) -> Iterator[str]:
    """Yield the table of docs/diagnosis.md."""
    judged, named = differently_judged(here, there), differently_named(here, there)
    yield "| programs | number | judged as by the hidden suites | named as by the teacher's copy |"
    yield "|---|--:|--:|--:|"
    for kind, sets in (("wrong", WRONG), ("right", ("right", "public"))):
        count = sum(program.set in sets for program in here)
        alike = [count - sum(p.set in sets for p in found) for found in (judged, named)]
        last = str(alike[1]) if kind == "wrong" else "–"
        yield f"| {kind} | {count} | {alike[0]} | {last} |"


def missed(here: Graded, there: Graded) -> list[str]:
    """Return the aims that are missed, in words."""
    judged, named = differently_judged(here, there), differently_named(here, there)
    found = [f"{p.set}/{p.exercise}/{p.name} is judged otherwise" for p in judged]
    wrong = sum(program.set in WRONG for program in here)
    if len(named) > (1 - AIM) * wrong:
        names = ", ".join(f"{p.exercise}/{p.name}" for p in named)
        found.append(f"{len(named)} of {wrong} wrong programs are named otherwise: {names}")
    return found


def main() -> int:
    """Measure and print; return 0 if the aims are met."""
    course, programs = load_course(ROOT), load()
    correct = {name: course[name].read("solution.py") for name in course.names}
    with tempfile.TemporaryDirectory() as folder, Zygote() as zygote:
        copy = students_copy(course, Path(folder))
        here, there = (grade(each, programs, correct, zygote) for each in (copy, course))
    table = "\n".join(rows(here, there)) + "\n"
    print(table)
    problems = missed(here, there)
    print("\n".join(problems) or "all aims are met")
    if "--write" in sys.argv:
        keep(ROOT / "docs" / "diagnosis.md", "copies", table)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
