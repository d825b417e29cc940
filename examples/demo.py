"""`make demo`: grade the sample class, print each verdict, and write a page for each student."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

from grader.catalog import load_course
from grader.records import Report
from grader.reports import FORMATS
from grader.sandbox.zygote import Zygote
from grader.submissions import discover

ROOT = Path(__file__).parent.parent
CLASS = ROOT / "examples" / "class"
PAGES = ROOT / "build" / "demo"


def reports() -> Iterator[Report]:
    """The report of every sample submission, from one warm slot."""
    with Zygote() as zygote:
        from grader.grading import Slot, fresh_seed, with_slot

        course = load_course(ROOT)
        seed = fresh_seed()
        names = course.names

        def body(slot: Slot) -> list[Report]:
            graded = []
            for folder in sorted(path for path in CLASS.iterdir() if path.is_dir()):
                submission = discover([folder], course)
                graded.append(slot.grade(submission, names, seed))
                show(graded[-1])
            return graded

        yield from with_slot(course, names, zygote, body)


def show(report: Report) -> None:
    """One line of verdict, and where its page lies."""
    PAGES.mkdir(parents=True, exist_ok=True)
    page = PAGES / f"{report.submission}.html"
    page.write_text(FORMATS["html"](report.to_json()), "utf-8")
    mend = next((e for e in report.exercises if not e.passed), None)
    first = f"first to mend: {mend.name}" if mend else "nothing to mend"
    place = page.relative_to(ROOT)
    print(f"  {report.submission}  {report.points:>3} / {report.max_points}  {place}  {first}")


def main() -> None:
    """Grade, and say what to look at."""
    print("Grading the sample class of examples/class/ (its README says what is in each)\n")
    start = time.perf_counter()
    graded = list(reports())
    spent = time.perf_counter() - start
    print(f"\n{len(graded)} submissions in {spent:.1f} seconds; open a page with a double click.")
    print("As a student would: .venv/bin/grader check examples/class/s002")


if __name__ == "__main__":
    main()
