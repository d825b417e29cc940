"""What a graded class comes out as: a report for each student, the marks, the dashboard.

Every page is written whole. What is up to date already is not written again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec

from grader.classroom.standings import Classbook, Standing
from grader.errors import RequestError
from grader.files import writing_whole
from grader.report import Report
from grader.reports import FORMATS, dashboard
from grader.reports.grades import write_csv
from grader.classroom.similarity import Similarity
from grader.classroom.statistics import Tally
from grader.course.stubs import make_stub
from grader.course.visibility import for_student

REPORTS, GRADES, RESULTS, DASHBOARD = "reports", "grades.csv", "results.jsonl", "index.html"
CLASS = "class"  # the setting that says of whom the pages of the class tell
MOST_COMPARED = 5000  # students; finding who resembles whom takes long among more
_HALF = re.compile(r"\.\d+\.(html|json|jsonl|md|csv)")  # a page, of a run that was killed
VIEWS = {".html": "html", ".json": "json", ".md": "markdown"}


@dataclass
class Publisher:
    """Writes the pages of a class into a folder."""

    book: Classbook
    out: Path

    def __post_init__(self) -> None:
        for page in (*self.out.glob(".*"), *(self.out / REPORTS).glob(".*")):
            if _HALF.fullmatch(page.name):
                page.unlink(missing_ok=True)

    def publish(self, student: str) -> Report | None:
        """Write a student's reports, if all is graded and something has changed.

        Returns the report that counts, or None while an attempt waits.
        """
        standing = self.book.standing(student)
        if standing is None:
            return None
        told = self.book.ledger.published(student)
        is_there = all(
            page.exists() for _, pages in self._pages(standing) for page in pages.values()
        )
        if told is None or told.fingerprint != standing.fingerprint or not is_there:
            self._write(standing)
            self.book.ledger.publish(student, standing.published(self.book.rules))
        return standing.report

    def _pages(self, standing: Standing) -> Iterator[tuple[Report, dict[str, Path]]]:
        """Each report of a student, with the file of each of its views."""
        for report, name in named(standing):
            yield (
                report,
                {form: self.out / REPORTS / f"{name}{suffix}" for suffix, form in VIEWS.items()},
            )

    def _write(self, standing: Standing) -> None:
        for report, pages in self._pages(standing):
            data = for_student(report, self.book.course.policy).to_json()
            for form, page in pages.items():
                with writing(page) as file:
                    file.write(FORMATS[form](data))

    def finish(self) -> None:
        """Write what tells of the class as a whole, unless it says just that already."""
        ledger = self.book.ledger
        places = [self.out / name for name in (GRADES, RESULTS, DASHBOARD)]
        fingerprint = ledger.class_fingerprint()
        if ledger.get(CLASS) == fingerprint and all(place.exists() for place in places):
            return
        ledger.put(CLASS, None)  # as long as they do not all say the same
        grades, results, page = places
        counted = _Counted(self.book)
        with writing(grades) as csv, writing(results) as lines:

            def told() -> Iterator[dict[str, Any]]:
                for standing in self.book.standings():
                    counted.add(standing.report)
                    report = standing.report.to_json()
                    lines.write(msgspec.json.encode(report).decode() + "\n")
                    yield report

            write_csv(csv, self.book.course.names, told())
        with writing(page) as file:
            file.write(dashboard.render(counted.summary()))
        if counted.students == len(ledger.students()):  # otherwise somebody waits, and is to join
            ledger.put(CLASS, fingerprint)


class _Counted:
    """What there is to say of the class as a whole, collected student by student."""

    def __init__(self, book: Classbook) -> None:
        self._book = book
        self._tally = Tally()
        self._alike = Similarity(make_stub(exercise) for exercise in book.course.exercises)
        self._compared = len(book.ledger.students()) <= MOST_COMPARED
        self.students = 0

    def add(self, report: Report) -> None:
        """Count a student in."""
        self.students += 1
        self._tally.add(report, f"{REPORTS}/{report.submission}.html")
        if self._compared:
            attempts = self._book.ledger.attempts(report.submission)
            counts = next(entry for entry in attempts if entry.number == report.attempt)
            self._alike.add(report.submission, self._book.ledger.submission(counts).files)

    def summary(self) -> dict[str, Any]:
        """What the dashboard shows."""
        missing = dict(self._book.ledger.missing())
        found = self._tally.summary(self._book.course.title, missing, self._alike.pairs())
        return found.to_json()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[TextIOWrapper]:
    """As `writing_whole`; what the disk refuses is said with what to do."""
    try:
        with writing_whole(path) as file:
            yield file
    except OSError as error:
        raise RequestError(
            f"cannot write {path}: {error.strerror}",
            "what was graded is kept; mend that, and run the same command again",
        ) from None


def named(standing: Standing) -> Iterator[tuple[Report, str]]:
    """Each report of a student, with what its files are called."""
    yield standing.report, standing.report.submission
    for report in standing.others:
        yield report, f"{report.submission}.attempt-{report.attempt}"
