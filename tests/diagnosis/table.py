"""`make diagnosis`: how often a mistake is named rightly, in solutions that it was not made from.

    python tests/diagnosis/table.py [--write] [--each]

Each file of corpus/<exercise>/ is a wrong solution in a style of its own; its first line says which
faults of the catalogue are in it, if any. `--each` prints a line for each solution, `--write` keeps
the table in docs/diagnosis.md. The exit code is 1 where a mistake outside the catalogue is named,
a solution is accepted, or too few are named.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from pages import keep  # noqa: E402

from grader.course.course import Course, load_course  # noqa: E402
from grader.report import Report  # noqa: E402
from grader.sandbox.host.zygote import Zygote  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

PAGE = ROOT / "docs" / "diagnosis.md"
OUTSIDE = "not in the catalogue: "
AIM = 0.85  # of the mistakes in the catalogue, named rightly
AIM_MS = 50.0
SEED = 7


@dataclass(frozen=True)
class Solution:
    """A wrong solution: `faults` are those of the catalogue that are in it, or none."""

    exercise: str
    name: str
    faults: frozenset[str]
    mistake: str
    text: str


@dataclass(frozen=True)
class Named:
    """What was said of a wrong solution, and how long the diagnosis took, in milliseconds."""

    accepted: bool
    explanations: tuple[frozenset[str], ...]
    milliseconds: float

    def verdict(self, solution: Solution) -> str:
        """In a word: right, tie (it is one of several), unnamed, wrong, accepted."""
        if self.accepted:
            return "accepted"
        if not self.explanations:
            return "unnamed"
        if solution.faults and solution.faults in self.explanations:
            return "right" if len(self.explanations) == 1 else "tie"
        return "wrong"


def load() -> list[Solution]:
    """Every wrong solution, by exercise and name."""
    return [_solution(path) for path in sorted((HERE / "corpus").glob("*/*.py"))]


def _solution(path: Path) -> Solution:
    text = path.read_text("utf-8")
    mistake = text.partition("\n")[0].removeprefix("# mistake: ")
    outside = mistake.startswith(OUTSIDE)
    faults = frozenset() if outside else frozenset(mistake.split(" + "))
    return Solution(path.parent.name, path.stem, faults, mistake, text)


def measure(course: Course, solutions: Sequence[Solution], zygote: Zygote) -> list[Named]:
    """Grade every solution among right ones, and have it diagnosed."""
    from grader.grading.grader import Slot, with_slot

    right = {name: course[name].read("solution.py") for name in course.names}

    def body(slot: Slot) -> list[Named]:
        named = []
        for solution in solutions:
            files = {**right, solution.exercise: solution.text}
            report, records = slot.examine(Submission("s001", files), [solution.exercise], SEED)
            start = time.perf_counter()
            slot.diagnosis(course[solution.exercise], report.exercises[0].tests, records)
            spent = 1000 * (time.perf_counter() - start)
            named.append(Named(report.passed, tuple(_explanations(report)), spent))
        return named

    return with_slot(course, course.names, zygote, body)


def _explanations(report: Report) -> Iterator[frozenset[str]]:
    diagnosis = report.exercises[0].diagnosis
    if diagnosis is not None and diagnosis.faults:
        yield frozenset(diagnosis.faults)
        yield from (frozenset(other.faults) for other in diagnosis.tie)


# --- the table ------------------------------------------------------------------------------------

KINDS = ("one mistake of the catalogue", "two at once", "a mistake that is not in it")
VERDICTS = ("right", "tie", "unnamed", "wrong", "accepted")


def kind(solution: Solution) -> str:
    """Which row a solution belongs to."""
    return KINDS[min(len(solution.faults), 2) - 1] if solution.faults else KINDS[2]


def counts(solutions: Sequence[Solution], named: Sequence[Named]) -> dict[str, dict[str, int]]:
    """How many of each kind got each verdict."""
    table = {row: dict.fromkeys(VERDICTS, 0) for row in KINDS}
    for solution, found in zip(solutions, named):
        table[kind(solution)][found.verdict(solution)] += 1
    return table


def share_named(table: Mapping[str, Mapping[str, int]]) -> float:
    """Of the solutions whose mistakes are in the catalogue, the share that was named rightly."""
    inside = [table[row] for row in KINDS[:2]]
    return sum(row["right"] for row in inside) / sum(sum(row.values()) for row in inside)


def rows(table: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """The table, in Markdown."""
    yield "| wrong solutions | number | named rightly | as a tie | not named | named wrongly |"
    yield "|---|--:|--:|--:|--:|--:|"
    for row, found in table.items():
        cells = [str(found[verdict]) for verdict in VERDICTS[:-1]]
        if row == KINDS[2]:
            cells[:2] = ["–", "–"]
        yield f"| {row} | {sum(found.values())} | {' | '.join(cells)} |"


def main() -> int:
    """Measure, print, and say whether the aims are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the table in docs/diagnosis.md")
    parser.add_argument("--each", action="store_true", help="print a line for each solution")
    arguments = parser.parse_args()
    course, solutions = load_course(ROOT), load()
    with Zygote() as zygote:
        named = measure(course, solutions, zygote)
    for solution, found in zip(solutions, named):
        said = found.verdict(solution)
        if arguments.each or said in ("wrong", "accepted"):
            print(f"{said:<9}{found.milliseconds:6.1f} ms  {solution.exercise}/{solution.name}")
            names = "  or  ".join(" + ".join(sorted(e)) for e in found.explanations)
            print(f"{'':<20}{solution.mistake}\n{'':<20}-> {names or 'none that we know'}")
    table = counts(solutions, named)
    text = "\n".join(rows(table))
    print(f"\n{text}\n")
    share, spent = share_named(table), [found.milliseconds for found in named]
    accepted = sum(found.accepted for found in named)
    print(f"named rightly: {share:.0%} of those in the catalogue (aim: {AIM:.0%})")
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
