"""How well unnamed mistakes are grouped: a synthetic class with unknown mistakes.

    python benchmarks/grouping.py                 500 students, 30 mistakes
    python benchmarks/grouping.py --students 200

A group is pure if all in it made the same mistake. Exits with 1 if a group is not, or if there are
more than 1.2 groups a mistake.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from unnamed import Spelled, programs  # noqa: E402, which stands beside the tests

from grader.classroom.mistakes import UnnamedGroups  # noqa: E402
from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.diagnosis.computed import catalogue_of  # noqa: E402
from grader.grading.diagnosis.signing import signature_of  # noqa: E402
from grader.grading.seeds import PUBLIC_SEED  # noqa: E402

MOST = 1.2  # groups a mistake
Groups = dict[str, set[tuple[str, str]]]  # the mistakes in each group, by its name


def main() -> int:
    """Group a synthetic class and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=500)
    course = load_course(ROOT).choose("core")
    students = a_class(course, parser.parse_args().students)
    groups = grouped(course, students)
    mistakes = {(each.exercise, each.mistake) for each in students}
    impure = {name: made for name, made in groups.items() if len(made) > 1}
    spellings = len({each.text for each in students})
    print(f"{len(students)} students, {len(mistakes)} mistakes in {spellings} programs")
    print(f"{len(groups)} groups, {len(groups) / len(mistakes):.2f} a mistake, at most {MOST}")
    print(f"{len(impure)} groups with more than one mistake")
    for name, made in impure.items():
        print(f"  {name}: {', '.join(sorted(mistake for _, mistake in made))}")
    return int(bool(impure) or len(groups) > MOST * len(mistakes))


def a_class(course: Course, count: int, *exercises: str) -> list[Spelled]:
    """Return the programs of a class: all of them in turn, in an order of its own."""
    found = list(programs(course, *exercises))
    random.Random(5).shuffle(found)
    return list(itertools.islice(itertools.cycle(found), count))


def grouped(course: Course, students: list[Spelled]) -> Groups:
    """Group a class by the answers of its programs to the public cases."""
    known, groups = UnnamedGroups(), defaultdict(set)
    sign = functools.cache(functools.partial(signature, course))
    for each in students:
        group = known.group(each.exercise, sign(each.exercise, each.text))
        groups[group].add((each.exercise, each.mistake))
    return dict(groups)


def signature(course: Course, exercise: str, text: str) -> str:
    """Return the signature of a program, which is one of ours and runs in this process."""
    catalogue = catalogue_of(course, course[exercise], PUBLIC_SEED)
    program = catalogue.respondent(text)
    answers = {case.name: program.answer(case) for case in catalogue.cases}
    return signature_of(catalogue, answers, whole=True)


if __name__ == "__main__":
    sys.exit(main())
