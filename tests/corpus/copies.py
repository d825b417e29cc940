"""How a students' copy compares with the hidden suites on programs of others.

    python tests/corpus/copies.py [--write]

Grades every program of the corpus in both, prints a table, and with `--write` keeps it in
docs/diagnosis.md. A kept verdict is taken if nothing has changed that it depends on. The exit code
is 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from corpus.programs import Program, load  # noqa: E402
from corpus.verdicts import Judge, Verdicts, students_copy  # noqa: E402
from pages import keep  # noqa: E402

from grader.course.course import load_course  # noqa: E402

WRONG = ("known", "outside", "broken")
AIM = 0.95  # the share of wrong programs that are named alike
FEW = 2  # of a small sample, so many may be named otherwise


def differently_named(here: Verdicts, there: Verdicts) -> list[Program]:
    """Return the wrong programs that are not named alike in both."""
    wrong = (program for program in here if program.set in WRONG)
    return [p for p in wrong if set(here[p].explanations) != set(there[p].explanations)]


def differently_judged(here: Verdicts, there: Verdicts) -> list[Program]:
    """Return the programs that are right in one and wrong in the other."""
    return [program for program in here if here[program].is_done != there[program].is_done]


def rows(here: Verdicts, there: Verdicts) -> Iterator[str]:
    """Yield the table of docs/diagnosis.md."""
    judged, named = differently_judged(here, there), differently_named(here, there)
    yield "| programs | number | judged as by the hidden suites | named as by the teacher's copy |"
    yield "|---|--:|--:|--:|"
    for kind, sets in (("wrong", WRONG), ("right", ("right", "public"))):
        count = sum(program.set in sets for program in here)
        alike = [count - sum(p.set in sets for p in found) for found in (judged, named)]
        last = str(alike[1]) if kind == "wrong" else "–"
        yield f"| {kind} | {count} | {alike[0]} | {last} |"


def missed(here: Verdicts, there: Verdicts) -> list[str]:
    """Return the aims that are missed, in words."""
    judged, named = differently_judged(here, there), differently_named(here, there)
    found = [f"{p.place} is judged otherwise" for p in judged]
    wrong = sum(program.set in WRONG for program in here)
    if len(named) > max(FEW, (1 - AIM) * wrong):
        names = ", ".join(f"{p.exercise}/{p.name}" for p in named)
        found.append(f"{len(named)} of {wrong} wrong programs are named otherwise: {names}")
    return found


def main() -> int:
    """Measure and print; return 0 if the aims are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the table")
    options = parser.parse_args()
    course, programs = load_course(ROOT), load()
    with tempfile.TemporaryDirectory() as folder:
        here = Judge(course, students_copy(course, Path(folder))).complete(programs)
        there = Judge(course).complete(programs)
    table = "\n".join(rows(here, there)) + "\n"
    print(table)
    problems = missed(here, there)
    print("\n".join(problems) or "all aims are met")
    if options.write:
        keep(ROOT / "docs" / "diagnosis.md", "copies", table)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
