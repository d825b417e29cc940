"""What a graded class comes out as: a report for each student, the marks, the dashboard.

Every page is written whole. What is up to date already is not written again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from grader.classbook import Classbook, Standing
from grader.errors import RequestError
from grader.files import writing_whole
from grader.records import Report
from grader.reports import FORMATS, dashboard
from grader.reports.grades import write_csv
from grader.similarity import Similarity
from grader.statistics import Tally
from grader.stubs import make_stub
from grader.visibility import for_student

REPORTS, GRADES, RESULTS, DASHBOARD = "reports", "grades.csv", "results.jsonl", "index.html"
VIEWS = {".html": "html", ".json": "json", ".md": "markdown"}


@dataclass
class Publisher:
    """Writes the pages of a class into a folder."""

    book: Classbook
    out: Path
    changed: bool = field(default=False, init=False)

    def publish(self, student: str) -> Report | None:
        """Write a student's reports, if all is graded and something has changed.

        Returns the report that counts, or None while an attempt waits.
        """
        standing = self.book.standing(student)
        if standing is None:
            return None
        told = self.book.ledger.published(student)
        pages = self.out / REPORTS / f"{student}.html"
        if told is None or told.fingerprint != standing.fingerprint or not pages.exists():
            self._write(standing)
            self.book.ledger.publish(student, standing.published(self.book.course))
            self.changed = True
        return standing.report

    def _write(self, standing: Standing) -> None:
        for report, name in named(standing):
            data = for_student(report, self.book.course.policy).to_json()
            for suffix, form in VIEWS.items():
                with writing(self.out / REPORTS / f"{name}{suffix}") as file:
                    file.write(FORMATS[form](data))

    def finish(self) -> None:
        """Write what tells of the class as a whole, unless nobody's report has changed."""
        places = [self.out / name for name in (GRADES, RESULTS, DASHBOARD)]
        if not self.changed and all(place.exists() for place in places):
            return
        grades, results, page = places
        names = self.book.course.names
        with writing(grades) as file:
            write_csv(file, names, (each.report.to_json() for each in self.book.standings()))
        with writing(results) as file:
            for standing in self.book.standings():
                file.write(json.dumps(standing.report.to_json(), ensure_ascii=False) + "\n")
        with writing(page) as file:
            file.write(dashboard.render(self._summary()))

    def _summary(self) -> dict[str, Any]:
        course, ledger = self.book.course, self.book.ledger
        tally = Tally()
        alike = Similarity(make_stub(exercise) for exercise in course.exercises)
        for standing in self.book.standings():
            report = standing.report
            tally.add(report, f"{REPORTS}/{report.submission}.html")
            entry = next(
                e for e in ledger.attempts(report.submission) if e.number == report.attempt
            )
            alike.add(report.submission, ledger.submission(entry).files)
        return tally.summary(course.title, dict(ledger.missing()), alike.pairs()).to_json()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[TextIO]:
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
