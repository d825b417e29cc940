"""`make accuracy`: what programs that the course was not made from earn, and what is said of them.

    python tests/corpus/accuracy.py [--write] [--each] [SET ...]

Each file SET/<exercise>/*.py is a student's solution; its first line says what is in it. The sets:

    known    wrong, with mistakes of the catalogue ("# mistake: no_scale + bias_always")
    outside  wrong, with mistakes that are in no catalogue
    right    right, in unusual styles
    public   right, in the styles of public implementations, some with other conventions
    broken   right but for one promise of the statement

`--each` prints lines for each program, `--write` updates the tables in docs/diagnosis.md and
docs/suites.md. The exit code is 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
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

SETS = ("known", "outside", "right", "public", "broken")
SEED = 7
AIM_NAMED = 0.9  # the share of known mistakes that must be named rightly; none may be wrong
MAX_ACCEPTED = 3  # broken promises that no check sees; docs/suites.md names each with a reason
MAX_LOST = 1  # points that a public implementation may lose for its conventions


@dataclass(frozen=True)
class Program:
    """A student's solution of one exercise, and what its first line says of it."""

    set: str
    exercise: str
    name: str
    label: str
    text: str

    @property
    def faults(self) -> frozenset[str]:
        """The faults of the catalogue that are in it."""
        return frozenset(self.label.split(" + ")) if self.set == "known" else frozenset()


@dataclass(frozen=True)
class Graded:
    """What a program earned and what was said of it; each explanation is a set of faults."""

    program: Program
    points: int
    max_points: int
    failed: tuple[str, ...]
    explanations: tuple[frozenset[str], ...]
    facts: tuple[str, ...]
    milliseconds: float  # of the diagnosis, once the catalogue is warm

    @property
    def lost(self) -> int:
        """The points lost."""
        return self.max_points - self.points

    @property
    def verdict(self) -> str:
        """One of right, tie, unnamed, wrong and accepted; a tie names the mistake among others."""
        if not self.lost:
            return "accepted"
        if not self.explanations:
            return "unnamed"
        if self.program.faults in self.explanations:
            return "right" if len(self.explanations) == 1 else "tie"
        # To name one mistake of two is not wrong, but it is not right either.
        return "unnamed" if min(self.explanations) < self.program.faults else "wrong"


def load(*sets: str) -> list[Program]:
    """Return the programs of some sets, or of all, sorted by set, exercise and name."""
    return [
        _program(path) for each in sets or SETS for path in sorted((HERE / each).glob("*/*.py"))
    ]


def _program(path: Path) -> Program:
    text = path.read_text("utf-8", errors="replace")
    lines = [line for line in text.split("\n")[:4] if line.startswith("# ")]
    label = next((line for line in lines if not line.startswith("# exercise:")), "# ")
    return Program(
        path.parent.parent.name, path.parent.name, path.stem, label.partition(": ")[2], text
    )


def measure(course: Course, programs: Sequence[Program], zygote: Zygote) -> list[Graded]:
    """Grade and diagnose every program; the other exercises of its submission are correct."""
    correct = {name: course[name].read("solution.py") for name in course.names}

    def body(grader: Grader) -> list[Graded]:
        return [_graded(grader, program, correct) for program in programs]

    return with_grader(course, course.names, zygote, body, keep_answers=True)


def _graded(grader: Grader, program: Program, correct: dict[str, str]) -> Graded:
    submission = Submission("s001", {**correct, program.exercise: program.text})
    (result,) = grader.grade(submission, [program.exercise], SEED).results
    failed = tuple(test.name for test in result.tests if test.is_wrong and test.max_points)
    return Graded(
        program,
        result.points - result.given_back,
        result.max_points,
        failed,
        tuple(explanations(result)),
        result.diagnosis.facts if result.diagnosis else (),
        _diagnosis_ms(grader, program, result),
    )


def _diagnosis_ms(grader: Grader, program: Program, result: ExerciseResult) -> float:
    """Return how long the diagnosis takes a second time: the programs have answered by then."""
    diagnostician = grader.diagnostician(grader.course[program.exercise])
    if diagnostician is None or result.diagnosis is None or diagnostician.last is None:
        return 0.0
    start = time.perf_counter()
    diagnostician.diagnose(result.tests, diagnostician.last, program.text)
    return 1000 * (time.perf_counter() - start)


def explanations(result: ExerciseResult) -> Iterator[frozenset[str]]:
    diagnosis = result.diagnosis
    if diagnosis is not None and diagnosis.faults:
        yield frozenset(diagnosis.faults)
        yield from (frozenset(other.faults) for other in diagnosis.tie)


# --- the tables -----------------------------------------------------------------------------------

KINDS = ("one mistake of the catalogue", "two at once", "a mistake that is not in it")
VERDICTS = ("right", "tie", "unnamed", "wrong", "accepted")


def named(graded: Sequence[Graded]) -> dict[str, Counter[str]]:
    """Return the number of wrong programs by kind and verdict."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for each in graded:
        if each.program.set in ("known", "outside"):
            kind = KINDS[min(len(each.program.faults), 2) - 1] if each.program.faults else KINDS[2]
            table[kind][each.verdict] += 1
    return table


def share_named(graded: Sequence[Graded]) -> float:
    """Return the share of known mistakes that are named rightly; a tie counts half."""
    found = Counter(each.verdict for each in graded if each.program.set == "known")
    return (found["right"] + found["tie"] / 2) / max(1, found.total())


def diagnosis_rows(graded: Sequence[Graded]) -> Iterator[str]:
    """Yield the table of docs/diagnosis.md."""
    yield "| wrong programs | number | named rightly | as a tie | not named | named wrongly |"
    yield "|---|--:|--:|--:|--:|--:|"
    for kind, found in named(graded).items():
        cells = [str(found[verdict]) for verdict in VERDICTS[:-1]]
        if kind == KINDS[2]:
            cells[:2] = ["–", "–"]
        yield f"| {kind} | {found.total()} | {' | '.join(cells)} |"


def suite_rows(graded: Sequence[Graded]) -> Iterator[str]:
    """Yield the table of docs/suites.md."""
    by_set = {each: [g for g in graded if g.program.set == each] for each in SETS}
    right, public, broken = by_set["right"], by_set["public"], by_set["broken"]
    wrong = by_set["known"] + by_set["outside"]
    yield "| programs | number | result |"
    yield "|---|--:|---|"
    losing = sum(g.lost > 0 for g in right)
    yield f"| right, in unusual styles | {len(right)} | {losing} lose points |"
    most = max((g.lost for g in public), default=0)
    losing = sum(g.lost > 0 for g in public)
    says = f"{losing} lose points, {most} at most" if losing else "0 lose points"
    yield f"| in the styles of public implementations | {len(public)} | {says} |"
    accepted = sum(not g.lost for g in broken)
    yield f"| right but for one promise of the statement | {len(broken)} | {accepted} accepted |"
    yield f"| wrong | {len(wrong)} | {sum(not g.lost for g in wrong)} accepted |"


def missed(graded: Sequence[Graded]) -> list[str]:
    """Return the aims that are missed, in words."""
    found = []
    for each in graded:
        place = f"{each.program.set}/{each.program.exercise}/{each.program.name}"
        lost = f"loses {each.lost} points by {', '.join(each.failed)}"
        if each.program.set in ("known", "outside") and each.verdict in ("wrong", "accepted"):
            found.append(f"{place} is {each.verdict}: {_named(each) or 'all points'}")
        if each.program.set == "right" and each.lost:
            found.append(f"{place} {lost}")
        if each.program.set == "public" and each.lost > MAX_LOST:
            found.append(f"{place} {lost}")
    accepted = [g.program.name for g in graded if g.program.set == "broken" and not g.lost]
    if len(accepted) > MAX_ACCEPTED:
        found.append(f"{len(accepted)} broken promises are accepted: {', '.join(accepted)}")
    if any(g.program.set == "known" for g in graded) and share_named(graded) < AIM_NAMED:
        found.append(f"only {share_named(graded):.0%} of known mistakes are named rightly")
    return found


def _named(graded: Graded) -> str:
    return "  or  ".join(" + ".join(sorted(names)) for names in graded.explanations)


def main() -> int:
    """Measure and print; return 0 if the aims are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], metavar="SET")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/")
    parser.add_argument("--each", action="store_true", help="print lines for each program")
    parser.add_argument("--only", default="", help="only this exercise")
    arguments = parser.parse_args()
    course = load_course(ROOT)
    programs = [p for p in load(*arguments.sets) if arguments.only in ("", p.exercise)]
    with Zygote() as zygote:
        graded = measure(course, programs, zygote)
    for each in graded if arguments.each else ():
        program = each.program
        print(f"{each.verdict:<9} −{each.lost:<3} {program.set}/{program.exercise}/{program.name}")
        print(f"{'':<15}{program.label}\n{'':<15}-> {_named(each) or ' '.join(each.facts) or '–'}")
    tables = "\n".join(diagnosis_rows(graded)), "\n".join(suite_rows(graded))
    print(f"\n{tables[0]}\n\n{tables[1]}\n")
    spent = sorted(each.milliseconds for each in graded if each.milliseconds)
    if spent:
        print(
            f"a diagnosis takes {spent[len(spent) // 2]:.1f} ms (median), {spent[-1]:.0f} at most"
        )
    problems = missed(graded)
    print("\n".join(problems) or "all aims are met")
    if arguments.write:
        keep(ROOT / "docs" / "diagnosis.md", "diagnosis", tables[0] + "\n")
        keep(ROOT / "docs" / "suites.md", "suites", tables[1] + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
