"""`make mutants`: mutants of every reference, and what becomes of each, as a table.

    python tests/mutants/table.py [--write] [--each] [--only EXERCISE ...] [--every N] [--quick]

A mutant is killed if a hidden test that is worth points fails on it. What survives goes to a second
judge, which asks far more: it finds the mutant equivalent, or the suite has accepted a wrong
program. `--each` prints the accepted ones as diffs, `--every N` tries the mutants of each N-th
edit, `--quick` asks less of what survives, `--write` keeps the row of each exercise in
docs/suites.md as soon as all its mutants are examined. The exit code is 1 if a mutant was accepted.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from mutants.mutator import Mutant, mutants, plain  # noqa: E402
from pages import keep, part  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.session import with_grader  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

if TYPE_CHECKING:
    import pytest
    from mutants.judge import Judge

    from grader.grading.grader import Grader

PAIRS = 150  # mutants of the second order, for each exercise
SEED = 7
PROCESSES = 2
CHUNK = 250  # mutants that one process examines at a time
QUICK = {"draws": 12, "seeds": 2}  # what the judge asks in a hurry
PAGE, PART = ROOT / "docs" / "suites.md", "mutants"  # where the table is kept
FATES = ("killed", "equivalent", "accepted")


@dataclass(frozen=True)
class Examined:
    """What became of a mutant: one of FATES, and the test or the call that shows it."""

    exercise: str
    mutant: Mutant
    fate: str
    how: str


def examine(
    course: Course,
    name: str,
    chosen: Sequence[Mutant],
    **thoroughness: int,
) -> list[Examined]:
    """Grade mutants of one exercise, and judge those that earn all points.

    `thoroughness` is that of the judge: `draws` and `seeds`.
    """

    def body(grader: Grader) -> list[Examined]:
        from mutants.judge import Judge  # imports torch

        suite = _Suite(grader, name)
        judge = Judge(course, course[name], **thoroughness)
        return [_examined(suite, judge, name, mutant) for mutant in chosen]

    return with_grader(course, [name], None, body)


def _examined(suite: _Suite, judge: Judge, name: str, mutant: Mutant) -> Examined:
    if test := suite.first_failure(mutant.text):
        return Examined(name, mutant, "killed", test)
    difference = judge.difference(mutant.text)
    return Examined(name, mutant, "accepted" if difference else "equivalent", difference)


class _Suite:
    """The hidden tests of one exercise, one at a time: those that killed most come first."""

    def __init__(self, grader: Grader, name: str) -> None:
        self._grader, self._name = grader, name
        self._items: list[pytest.Item] = list(grader.suite.items[name])
        self._kills = dict.fromkeys(self._items, 0)
        course = grader.course
        self._solutions = {each: course[each].read("solution.py") for each in course.names}

    def first_failure(self, text: str) -> str:
        """Return the name of a test worth points that fails on `text`; nothing if all pass."""
        from grader.grading.examiner import secrecy_of

        suite = self._grader.suite
        submission = Submission("mutant", {**self._solutions, self._name: text})
        # The program is loaded again for tests of another secrecy.
        order = sorted(self._items, key=lambda item: (secrecy_of(item), -self._kills[item]))
        with self._grader.examining(submission, SEED, [self._name]) as examiner:
            for item in order:
                suite.items[self._name] = [item]
                (outcome,) = suite.run(examiner, self._name)
                if outcome.is_wrong and outcome.max_points:
                    self._kills[item] += 1
                    return outcome.name
        return ""


def diff(course: Course, each: Examined) -> str:
    """Return how a mutant differs from the reference, in lines."""
    before = plain(course[each.exercise].read("solution.py")).splitlines()
    lines = difflib.unified_diff(before, each.mutant.text.splitlines(), lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


Counts = dict[str, tuple[int, ...]]  # by exercise, of each fate


def counted(examined: Sequence[Examined]) -> Counts:
    """Return how many mutants of each exercise had which fate."""
    fates = {each.exercise: Counter[str]() for each in examined}
    for each in examined:
        fates[each.exercise][each.fate] += 1
    return {name: tuple(found[fate] for fate in FATES) for name, found in fates.items()}


def rows(counts: Counts) -> Iterator[str]:
    """Yield the table of docs/suites.md."""
    yield "| exercise | mutants | killed | equivalent | accepted |"
    yield "|---|--:|--:|--:|--:|"
    together = tuple(map(sum, zip(*counts.values())))
    labelled = {f"`{name}`": found for name, found in counts.items()}
    for label, found in {**labelled, "together": together}.items():
        yield f"| {label} | {sum(found):,} | {' | '.join(f'{count:,}' for count in found)} |"


def kept_counts() -> Counts:
    """Return the counts in the table of docs/suites.md."""
    found = re.findall(r"^\| `(\w+)` \| [\d,]+ \| (.*) \|$", part(PAGE, PART), re.MULTILINE)
    return {name: tuple(int(n.replace(",", "")) for n in row.split(" | ")) for name, row in found}


def _examined_apart(
    name: str, chosen: Sequence[Mutant], thoroughness: dict[str, int]
) -> list[Examined]:
    """Examine mutants in a process of its own."""
    return examine(load_course(ROOT), name, chosen, **thoroughness)


def _all_examined(
    course: Course, names: Sequence[str], every: int, thoroughness: dict[str, int]
) -> Iterator[tuple[list[Examined], bool]]:
    """Yield what became of some mutants of one exercise, and whether they are the last of it."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=fresh) as pool:
        jobs = {}
        for name in names:
            made = mutants(course[name].read("solution.py"), PAIRS, every=every)
            while chosen := list(itertools.islice(made, CHUNK)):
                jobs[pool.submit(_examined_apart, name, chosen, thoroughness)] = name
        left = Counter(jobs.values())
        for job in as_completed(jobs):
            left[jobs[job]] -= 1
            yield job.result(), not left[jobs[job]]


def _keep(course: Course, name: str, counts: Counts) -> None:
    """Write the row of an exercise into the table of docs/suites.md, in the order of the course."""
    whole = kept_counts() | {name: counts[name]}
    ordered = {name: whole[name] for name in course.names if name in whole}
    keep(PAGE, PART, "\n".join(rows(ordered)) + "\n")


def main() -> int:
    """Measure and print; return 0 if no mutant was accepted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table to docs/suites.md")
    parser.add_argument("--each", action="store_true", help="print the accepted mutants as diffs")
    parser.add_argument(
        "--only", nargs="+", metavar="EXERCISE", help="only those of some exercises"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th mutant")
    parser.add_argument("--quick", action="store_true", help="ask less of what survives")
    arguments = parser.parse_args()
    course, start = load_course(ROOT), time.perf_counter()
    names = arguments.only or list(course.names)
    examined: list[Examined] = []
    thoroughness = QUICK if arguments.quick else {}
    for chunk, is_last in _all_examined(course, names, arguments.every, thoroughness):
        examined += chunk
        accepted = [each for each in chunk if each.fate == "accepted"]
        spent = time.perf_counter() - start
        print(
            f"{spent:6.0f} s  {len(examined):6,} mutants, {len(accepted)} accepted "
            f"in the last {len(chunk)} of {chunk[0].exercise}",
            flush=True,
        )
        for each in accepted if arguments.each else ():
            print(f"\n{each.exercise}: {each.how}\n{diff(course, each)}", flush=True)
        if arguments.write and is_last:
            _keep(course, chunk[0].exercise, counted(examined))
    examined.sort(key=lambda each: names.index(each.exercise))
    print("\n".join(["", *rows(counted(examined)), ""]))
    return 1 if any(each.fate == "accepted" for each in examined) else 0


if __name__ == "__main__":
    sys.exit(main())
