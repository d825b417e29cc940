"""The pages of a graded class: a report for each student, the marks, the dashboard."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

from grader.classroom.similarity import Similarity
from grader.classroom.standings import Standing, Standings
from grader.classroom.statistics import ClassTally
from grader.classroom.storage import KEPT
from grader.course.stubs import make_stub
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.files import writing_whole
from grader.report import Report
from grader.reports import dashboard, render
from grader.reports.data import to_json_line
from grader.reports.platforms.grades import write_csv
from grader.reports.summary import Summary

REPORTS, GRADES, RESULTS, DASHBOARD = "reports", "grades.csv", "results.jsonl", "index.html"
CLASS = "class"  # the setting with the fingerprint of the class's pages
MAX_COMPARED = 5000  # students; comparing more submissions takes too long
_UNFINISHED = re.compile(r"\.\d+\.(html|json|jsonl|md|csv)")  # a page of a run that was killed
VIEWS = {".html": "html", ".json": "json", ".md": "markdown"}


@dataclass
class Publisher:
    """Writes the pages of a class into a folder."""

    standings: Standings
    out: Path

    def __post_init__(self) -> None:
        for page in (*self.out.glob(".*"), *(self.out / REPORTS).glob(".*")):
            if _UNFINISHED.fullmatch(page.name):
                page.unlink(missing_ok=True)

    def publish(self, student: str) -> Report | None:
        """Write a student's reports if changed; return the one that counts, None if ungraded."""
        standing = self.standings.standing(student)
        if standing is None:
            return None
        published = self.standings.ledger.published(student)
        is_current = published is not None and published.fingerprint == standing.fingerprint
        pages = chain.from_iterable(files.values() for _, files in self._pages(standing))
        if not is_current or not all(page.exists() for page in pages):
            self._write(standing)
            self.standings.ledger.publish(student, standing.published(self.standings.rules))
        return standing.report

    def _pages(self, standing: Standing) -> Iterator[tuple[Report, dict[str, Path]]]:
        for report in (standing.report, *standing.others):
            name = report.submission
            if report is not standing.report:
                name += f".attempt-{report.attempt}"
            yield report, {f: self.out / REPORTS / f"{name}{end}" for end, f in VIEWS.items()}

    def _write(self, standing: Standing) -> None:
        for report, pages in self._pages(standing):
            visible = for_student(report, self.standings.course.policy)
            for form, page in pages.items():
                with writing(page) as file:
                    file.write(render(visible, form))

    def finish(self) -> None:
        """Write the pages of the class as a whole, unless they are up to date."""
        ledger = self.standings.ledger
        places = [self.out / name for name in (GRADES, RESULTS, DASHBOARD)]
        fingerprint, students = ledger.class_fingerprint(), len(ledger.students())
        if ledger.get(CLASS) == fingerprint and all(place.exists() for place in places):
            return
        ledger.put(CLASS, None)  # until all three are written
        summary = self._write_marks(compare=students <= MAX_COMPARED)
        with writing(self.out / DASHBOARD) as page:
            page.write(dashboard.render(summary))
        if len(summary.students) == students:  # otherwise some are not graded yet
            ledger.put(CLASS, fingerprint)

    def _write_marks(self, compare: bool) -> Summary:
        """Write the marks and results of all students; return what the dashboard shows."""
        course, tally = self.standings.course, ClassTally()
        similarity = Similarity(make_stub(exercise) for exercise in course.exercises)
        with writing(self.out / GRADES) as grades, writing(self.out / RESULTS) as lines:

            def reports() -> Iterator[Report]:
                for standing in self.standings.graded():
                    report = standing.report
                    tally.add(report, f"{REPORTS}/{report.submission}.html")
                    if compare:
                        similarity.add(report.submission, standing.submission.files)
                    lines.write(to_json_line(report))
                    yield report

            write_csv(grades, course.names, reports())
        missing = dict(self.standings.ledger.missing())
        return tally.summary(course.title, missing, similarity.pairs())


@contextlib.contextmanager
def writing(path: Path) -> Iterator[TextIOWrapper]:
    """Open a file as `writing_whole` does; raise `RequestError` for an error of the disk."""
    try:
        with writing_whole(path) as file:
            yield file
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", KEPT) from None
