"""`make diagnosis`: how often the diagnosis is right on solutions that it was not made from.

    python tests/diagnosis/table.py [--write] [--each]

Each file of corpus/<exercise>/ is a wrong solution in a style of its own; its first line names the
faults of the catalogue that are in it, if any. `--each` prints lines for each solution, `--write`
updates the table in docs/diagnosis.md. The exit code is 1 if a mistake is named wrongly, a solution
is accepted, or too few mistakes are named.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from pages import keep  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.session import with_grader  # noqa: E402
from grader.report import ExerciseResult  # noqa: E402
from grader.sandbox.host.zygote import Zygote  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

if TYPE_CHECKING:
    from grader.grading.grader import Grader

PAGE = ROOT / "docs" / "diagnosis.md"
OUTSIDE = "not in the catalogue: "
AIM = 0.85  # the share of mistakes in the catalogue that must be named correctly
AIM_MS = 50.0  # the longest that a diagnosis should take
SEED = 7


@dataclass(frozen=True)
class Solution:
    """A wrong solution; `faults` are the names of the catalogue's faults in it, if any."""

    exercise: str
    name: str
    faults: frozenset[str]
    mistake: str
    text: str


@dataclass(frozen=True)
class Named:
    """The result for a wrong solution; each explanation is a set of faults."""

    accepted: bool
    explanations: tuple[frozenset[str], ...]
    milliseconds: float

    def verdict(self, solution: Solution) -> str:
        """Return one of `VERDICTS`; a tie is a correct explanation among several."""
        if self.accepted:
            return "accepted"
        if not self.explanations:
            return "unnamed"
        if solution.faults and solution.faults in self.explanations:
            return "right" if len(self.explanations) == 1 else "tie"
        return "wrong"


def load() -> list[Solution]:
    """Return all wrong solutions, sorted by exercise and name."""
    return [_solution(path) for path in sorted((HERE / "corpus").glob("*/*.py"))]


def _solution(path: Path) -> Solution:
    text = path.read_text("utf-8")
    mistake = text.partition("\n")[0].removeprefix("# mistake: ")
    outside = mistake.startswith(OUTSIDE)
    faults = frozenset() if outside else frozenset(mistake.split(" + "))
    return Solution(path.parent.name, path.stem, faults, mistake, text)


def measure(
    course: Course, solutions: Sequence[Solution], zygote: Zygote, *, timed: bool = True
) -> list[Named]:
    """Grade and diagnose every solution; the other exercises of its submission are correct.

    With `timed`, each diagnosis is made a second time, to measure how long it takes.
    """
    correct = {name: course[name].read("solution.py") for name in course.names}

    def body(grader: Grader) -> list[Named]:
        named = []
        for solution in solutions:
            submission = Submission("s001", {**correct, solution.exercise: solution.text})
            grading = grader.grade(submission, [solution.exercise], SEED)
            (result,) = grading.results
            start = time.perf_counter()
            if timed:
                grader.diagnose(course[solution.exercise], result.tests, grading.call_logs)
            spent = 1000 * (time.perf_counter() - start)
            named.append(Named(result.passed, tuple(_explanations(result)), spent))
        return named

    return with_grader(course, course.names, zygote, body)


def _explanations(result: ExerciseResult) -> Iterator[frozenset[str]]:
    diagnosis = result.diagnosis
    if diagnosis is not None and diagnosis.faults:
        yield frozenset(diagnosis.faults)
        yield from (frozenset(other.faults) for other in diagnosis.tie)


# --- the table ------------------------------------------------------------------------------------

KINDS = ("one mistake of the catalogue", "two at once", "a mistake that is not in it")
VERDICTS = ("right", "tie", "unnamed", "wrong", "accepted")


def kind(solution: Solution) -> str:
    """Return the row of the table that a solution belongs to."""
    return KINDS[min(len(solution.faults), 2) - 1] if solution.faults else KINDS[2]


def counts(solutions: Sequence[Solution], named: Sequence[Named]) -> dict[str, dict[str, int]]:
    """Return the number of solutions by kind and verdict."""
    table = {row: dict.fromkeys(VERDICTS, 0) for row in KINDS}
    for solution, found in zip(solutions, named):
        table[kind(solution)][found.verdict(solution)] += 1
    return table


def share_named(table: Mapping[str, Mapping[str, int]]) -> float:
    """Return the share named correctly among solutions whose mistakes are in the catalogue."""
    inside = [table[row] for row in KINDS[:2]]
    return sum(row["right"] for row in inside) / sum(sum(row.values()) for row in inside)


def rows(table: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| wrong solutions | number | named rightly | as a tie | not named | named wrongly |"
    yield "|---|--:|--:|--:|--:|--:|"
    for row, found in table.items():
        cells = [str(found[verdict]) for verdict in VERDICTS[:-1]]
        if row == KINDS[2]:
            cells[:2] = ["–", "–"]
        yield f"| {row} | {sum(found.values())} | {' | '.join(cells)} |"


def main() -> int:
    """Measure and print; return 0 if the aims are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table to docs/diagnosis.md")
    parser.add_argument("--each", action="store_true", help="print lines for each solution")
    arguments = parser.parse_args()
    course, solutions = load_course(ROOT), load()
    with Zygote() as zygote:
        named = measure(course, solutions, zygote)
    for solution, found in zip(solutions, named):
        verdict = found.verdict(solution)
        if arguments.each or verdict in ("wrong", "accepted"):
            print(f"{verdict:<9}{found.milliseconds:6.1f} ms  {solution.exercise}/{solution.name}")
            names = "  or  ".join(" + ".join(sorted(e)) for e in found.explanations)
            print(f"{'':<20}{solution.mistake}\n{'':<20}-> {names or 'no known mistake'}")
    table = counts(solutions, named)
    text = "\n".join(rows(table))
    print(f"\n{text}\n")
    share, spent = share_named(table), [found.milliseconds for found in named]
    accepted = sum(found.accepted for found in named)
    print(f"named correctly: {share:.0%} of those in the catalogue (aim: {AIM:.0%})")
    print(f"named wrongly: {sum(row['wrong'] for row in table.values())}; accepted: {accepted}")
    slow = sum(value > AIM_MS for value in spent)
    print(
        f"a diagnosis takes {statistics.median(spent):.0f} ms (median), "
        f"{max(spent):.0f} ms at most; {slow} of {len(spent)} more than {AIM_MS:.0f} ms"
    )
    if arguments.write:
        keep(PAGE, "diagnosis", text + "\n")
    bad = accepted or any(row["wrong"] for row in table.values())
    return 1 if bad or share < AIM else 0


if __name__ == "__main__":
    sys.exit(main())
