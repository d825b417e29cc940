"""`make prove`: what programs that the course was not made from earn, and what is said of them.

    python tests/corpus/accuracy.py [--write] [--each] [--only EXERCISE] [SET ...]

The sets of programs are those of programs.py. A kept verdict is taken if nothing has changed that it
depends on. `--each` prints lines for each program, `--write` updates the tables in docs/diagnosis.md
and docs/suites.md. The exit code is 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from corpus.programs import SETS, Program, load  # noqa: E402
from corpus.verdicts import Judge, Verdict, Verdicts  # noqa: E402
from pages import keep  # noqa: E402

from grader.course.course import load_course  # noqa: E402

FEW = 5  # of a small sample, so many may have no name: an exercise with many such is drawn, too
AIM_NAMED = 0.9  # the share of known mistakes that must be named rightly; none may be wrong
MAX_ACCEPTED = 3  # broken promises that no check sees; docs/suites.md names each with a reason
MAX_LOST = 0.1  # of the points, or one; a public implementation may lose it by its conventions


@dataclass(frozen=True)
class Graded:
    """A program and the verdict of the hidden suites on it."""

    program: Program
    verdict: Verdict

    @property
    def lost(self) -> int:
        """The points lost in the end."""
        return self.verdict.max_points - self.verdict.mark

    @property
    def naming(self) -> str:
        """One of right, tie, unnamed, wrong and accepted; a tie names the mistake among others."""
        explanations = [frozenset(each) for each in self.verdict.explanations]
        if not self.lost:
            return "accepted"
        if not explanations:
            return "unnamed"
        if self.program.faults in explanations:
            return "right" if len(explanations) == 1 else "tie"
        # To name one mistake of two is not wrong, but it is not right either.
        return "unnamed" if min(explanations) < self.program.faults else "wrong"


def graded(verdicts: Verdicts) -> list[Graded]:
    """Return the programs with their verdicts."""
    return [Graded(program, verdict) for program, verdict in verdicts.items()]


# --- the tables -----------------------------------------------------------------------------------

KINDS = ("one mistake of the catalogue", "two at once", "a mistake that is not in it")
NAMINGS = ("right", "tie", "unnamed", "wrong", "accepted")


def wrong_by_kind(graded: Sequence[Graded]) -> dict[str, list[Graded]]:
    """Return the wrong programs by kind."""
    table: dict[str, list[Graded]] = {kind: [] for kind in KINDS}
    for each in graded:
        if each.program.set in ("known", "outside"):
            kind = KINDS[min(len(each.program.faults), 2) - 1] if each.program.faults else KINDS[2]
            table[kind].append(each)
    return table


def mean_mark(graded: Sequence[Graded]) -> str:
    """Return the mean of the marks, as a share of the points."""
    marks = [each.verdict.mark / each.verdict.max_points for each in graded]
    return f"{statistics.mean(marks):.2f}" if marks else "–"


def share_named(graded: Sequence[Graded]) -> float:
    """Return the share of known mistakes that are named rightly; a tie counts half."""
    found = Counter(each.naming for each in graded if each.program.set == "known")
    return (found["right"] + found["tie"] / 2) / max(1, found.total())


def diagnosis_rows(graded: Sequence[Graded]) -> Iterator[str]:
    """Yield the table of docs/diagnosis.md."""
    heads = ["wrong programs", "number", "named rightly", "as a tie", "not named", "named wrongly"]
    yield f"| {' | '.join(heads)} | mean mark |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for kind, programs in wrong_by_kind(graded).items():
        found = Counter(each.naming for each in programs)
        cells = [str(found[naming]) for naming in NAMINGS[:-1]]
        if kind == KINDS[2]:
            cells[:2] = ["–", "–"]
        yield f"| {kind} | {len(programs)} | {' | '.join(cells)} | {mean_mark(programs)} |"
    charged = [g for g in graded if g.program.set == "known" and g.naming == "right"]
    more = sum(g.verdict.lost_besides > 0 for g in charged)
    yield f"\nNamed rightly, but charged for another check besides: {more} of {len(charged)}."


def suite_rows(graded: Sequence[Graded]) -> Iterator[str]:
    """Yield the table of docs/suites.md."""
    by_set = {each: [g for g in graded if g.program.set == each] for each in SETS}
    right, public, broken = by_set["right"], by_set["public"], by_set["broken"]
    wrong = by_set["known"] + by_set["outside"]
    yield "| programs | number | result | mean mark |"
    yield "|---|--:|---|--:|"
    losing = sum(g.lost > 0 for g in right)
    says = f"{losing} lose points"
    yield f"| right, in unusual styles | {len(right)} | {says} | {mean_mark(right)} |"
    most = max((g.lost for g in public), default=0)
    losing = sum(g.lost > 0 for g in public)
    says = f"{losing} lose points, {most} at most" if losing else "0 lose points"
    styles = "in the styles of public implementations"
    yield f"| {styles} | {len(public)} | {says} | {mean_mark(public)} |"
    for kind, found in (("right but for one promise of the statement", broken), ("wrong", wrong)):
        accepted = sum(not g.lost for g in found)
        yield f"| {kind} | {len(found)} | {accepted} accepted | {mean_mark(found)} |"


def missed(graded: Sequence[Graded]) -> list[str]:
    """Return the aims that are missed, in words."""
    found = []
    for each in graded:
        place = each.program.place
        lost = f"loses {each.lost} points by {', '.join(each.verdict.failed)}"
        if each.program.set in ("known", "outside") and each.naming in ("wrong", "accepted"):
            found.append(f"{place} is {each.naming}: {_named(each) or 'all points'}")
        if each.program.set == "right" and each.lost:
            found.append(f"{place} {lost}")
        if each.program.set == "public" and each.lost > max(1, MAX_LOST * each.verdict.max_points):
            found.append(f"{place} {lost}")
    accepted = [g.program.name for g in graded if g.program.set == "broken" and not g.lost]
    if len(accepted) > MAX_ACCEPTED:
        found.append(f"{len(accepted)} broken promises are accepted: {', '.join(accepted)}")
    known = sum(g.program.set == "known" for g in graded)
    if known * (1 - share_named(graded)) > max(FEW, known * (1 - AIM_NAMED)):
        found.append(f"only {share_named(graded):.0%} of known mistakes are named rightly")
    return found


def _named(graded: Graded) -> str:
    return "  or  ".join(" + ".join(sorted(names)) for names in graded.verdict.explanations)


def main() -> int:
    """Measure and print; return 0 if the aims are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], metavar="SET")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/")
    parser.add_argument("--each", action="store_true", help="print lines for each program")
    parser.add_argument("--only", default="", help="only this exercise")
    arguments = parser.parse_args()
    if arguments.write and (arguments.sets or arguments.only):
        parser.error("--write is for all programs")
    programs = [p for p in load(*arguments.sets) if arguments.only in ("", p.exercise)]
    found = graded(Judge(load_course(ROOT)).complete(programs))
    for each in found if arguments.each else ():
        facts = " ".join(each.verdict.facts)
        print(f"{each.naming:<9} −{each.lost:<3} {each.program.place}")
        print(f"{'':<15}{each.program.label}\n{'':<15}-> {_named(each) or facts or '–'}")
    tables = "\n".join(diagnosis_rows(found)), "\n".join(suite_rows(found))
    print(f"\n{tables[0]}\n\n{tables[1]}\n")
    problems = missed(found)
    print("\n".join(problems) or "all aims are met")
    if arguments.write:
        keep(ROOT / "docs" / "diagnosis.md", "diagnosis", tables[0] + "\n")
        keep(ROOT / "docs" / "suites.md", "suites", tables[1] + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
