"""The pages of a graded class: a report for each student, the marks, the dashboard."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from grader.classroom.code_views import pair_view, view_of
from grader.classroom.review import DamagedRowError
from grader.classroom.rules import RULES
from grader.classroom.similarity import Similarity
from grader.classroom.standings import Standing, Standings
from grader.classroom.statistics import ClassTally
from grader.classroom.storage import KEPT
from grader.classroom.stored.history import HistoryRow
from grader.classroom.stored.marks import PublishedMark
from grader.course.stubs import make_stub
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.files import Draft, fingerprint, fingerprint_of, sync, sync_files, writing_whole
from grader.report import Person, Report
from grader.reports import code, dashboard, render
from grader.reports.data import to_json_line
from grader.reports.figures import change
from grader.reports.platforms.grades import write_csv
from grader.reports.summary import SimilarGroup, Summary
from grader.submissions.submission import Submission

REPORTS, GRADES, RESULTS, DASHBOARD = "reports", "grades.csv", "results.jsonl", "index.html"
CODE, SIMILAR = "code", "similar"  # the folders of pages that only teachers read
CODE_FORM = "code"
MAX_GROUPS = 100  # pairs of similar submissions with pages of their own
CLASS = "class"  # the setting with the fingerprint of the class's pages
MAX_COMPARED = 5000  # students; comparing more submissions takes too long
GROUP_SECONDS = 1.0  # seconds between two times that pages are synced together
NAMED = {errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ}  # errors of one path, not of the disk
VIEWS = {".html": "html", ".json": "json", ".md": "markdown"}


@dataclass(frozen=True)
class _Pending:
    """A student's written pages that are not in their places yet."""

    mark: PublishedMark
    drafts: list[Draft]
    change: HistoryRow | None
    old_pages: frozenset[str]  # old pages that no new one replaces


@dataclass
class Publisher:
    """Writes the pages of a class into a folder.

    Pages are written at once and put in their places in groups: a group is synced together, and
    only then is it recorded as published. `flush` ends a group, `finish` the last one. `why` is
    the reason in the history for marks that change although the files are the same.
    """

    standings: Standings
    out: Path
    why: str = "graded again"
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _flushed: float = 0.0

    def publish(self, student: str) -> Report | None:
        """Write a student's reports if changed; return the one that counts.

        Return None if there is none yet, or if something about this student broke; then the
        ledger's `review` names the student.
        """
        with self.standings.ledger.review.errors_of(student):
            standing = self.standings.standing(student)
            if standing is not None and not self._is_current(standing):
                self._write(standing)
                if time.monotonic() > self._flushed + GROUP_SECONDS:
                    self.flush()
            return standing.report if standing else None
        return None

    def _is_current(self, standing: Standing) -> bool:
        """Return whether the pages on the disk are those written for this standing.

        After a power cut, a page may be empty.
        """
        student = standing.report.submission
        if student in self._pending:
            published: PublishedMark | None = self._pending[student].mark
        else:
            published = self.standings.ledger.published(student)
        if published is None or published.fingerprint != standing.fingerprint:
            return False
        pages = {page for _, files in self._pages(standing) for page in files.values()}
        return published.pages.keys() == pages and (
            student in self._pending or self._on_disk(pages) == published.pages
        )

    def _on_disk(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: fingerprint(self.out / name) for name in names}

    def _pages(self, standing: Standing) -> Iterator[tuple[Report, dict[str, str]]]:
        """Yield each report of a student, and the names of its pages by form.

        The page with the code is made of the attempt that counts.
        """
        for report in (standing.report, *standing.others):
            name = report.submission
            if report is not standing.report:
                name += f".attempt-{report.attempt}"
            pages = {form: f"{REPORTS}/{name}{end}" for end, form in VIEWS.items()}
            if report is standing.report:
                pages[CODE_FORM] = f"{CODE}/{name}.html"
            yield report, pages

    def _write(self, standing: Standing) -> None:
        drafts: list[Draft] = []
        written = {}
        try:
            for report, pages in self._pages(standing):
                visible = for_student(report, self.standings.course.policy)
                for form, page in pages.items():
                    is_code = form == CODE_FORM
                    text = code_page(self.standings, standing) if is_code else render(visible, form)
                    with writing(self.out / page, drafts) as file:
                        file.write(text)
                    written[page] = fingerprint_of(text)
        except BaseException:
            _discard(drafts)
            raise
        student = standing.report.submission
        if student in self._pending:
            _discard(self._pending.pop(student).drafts)
        before = self.standings.ledger.published(student)
        mark = replace(standing.published(self.standings.rules), pages=written)
        old_pages = frozenset(before.pages if before else ()) - written.keys()
        self._pending[student] = _Pending(mark, drafts, self._change(standing, before), old_pages)

    def _change(self, standing: Standing, before: PublishedMark | None) -> HistoryRow | None:
        """Return the change of a student's mark for the history; None if there is none."""
        report, mark = standing.report, standing.published(self.standings.rules)
        digest = report.hashes.get("submission", "")
        points = float(mark.points), float(mark.max_points)
        entry = HistoryRow("mark", self.why, report.submission, digest, *points)
        if before is None:
            return replace(entry, why="graded for the first time")
        last = self.standings.ledger.last_mark(report.submission)
        if last is not None and last.hash != digest:
            why = f"attempt {report.attempt} counts, with other files than before"
            entry = replace(entry, why=why)
        elif (before.points, before.max_points) == points:
            return None
        moved = ", ".join(f"{name} {change(by)}" for name, by in mark.moved_from(before))
        return replace(entry, why=f"{entry.why} ({moved})") if moved else entry

    def flush(self) -> None:
        """Put the waiting pages in their places, on the disk, and record them as published."""
        pending, self._pending = self._pending, {}
        ledger, placed = self.standings.ledger, {}
        drafts = [draft for each in pending.values() for draft in each.drafts]
        folder = self.out / REPORTS
        ledger.end_epochs_of(pending)  # before anybody can read a report
        try:
            if drafts:
                with explained(folder):
                    sync_files(folder, (draft.fresh for draft in drafts))
            for student, each in pending.items():
                with ledger.review.errors_of(student):
                    for draft in each.drafts:
                        with explained(draft.path):
                            draft.put()
                    self._remove(each.old_pages)
                    placed[student] = each
            for folder in {draft.path.parent for draft in drafts}:
                with explained(folder):
                    sync(folder)
        finally:
            _discard(drafts)
        if placed:
            with ledger.writing():
                ledger.publish({student: each.mark for student, each in placed.items()})
                ledger.remember(*(each.change for each in placed.values() if each.change))
        self._flushed = time.monotonic()

    def _remove(self, pages: Iterable[str]) -> None:
        """Remove pages that were published before, but are not any more."""
        for page in pages:
            path = self.out / page
            if path.parent in (self.out / REPORTS, self.out / CODE):  # whatever the ledger says
                with explained(path):
                    path.unlink(missing_ok=True)

    def _withdraw_gone(self) -> None:
        """Remove the reports of the students who are gone, and remember it."""
        ledger = self.standings.ledger
        for student in ledger.gone():
            with ledger.review.errors_of(student):
                published = ledger.published(student)
                self._remove(published.pages if published else ())
                with ledger.writing():
                    ledger.withdraw(student)
                    ledger.remember(HistoryRow("gone", "handed in nothing any more", student))

    def finish(self) -> None:
        """Write the pages of the class as a whole, unless they are up to date."""
        self.flush()
        self._withdraw_gone()
        ledger, names = self.standings.ledger, (GRADES, RESULTS, DASHBOARD)
        if self.standings.is_as_published and ledger.get(RULES) != self.standings.rule_parts:
            ledger.put(RULES, self.standings.rule_parts)
        known, students = ledger.class_fingerprint(), len(ledger.students())
        others = {"missing": self.standings.course.policy.missing}
        state = {"fingerprint": known, "pages": self._on_disk(names), **others}
        kept = ledger.get(CLASS)
        if kept == state and not ledger.review.reasons:
            return
        if kept is not None:
            ledger.put(CLASS, None)  # until all three are written
        summary = self._write_marks()
        write_dashboard(self.standings, self.out, summary, self._submission)
        if len(summary.students) == students:  # otherwise some are not graded yet
            known = ledger.class_fingerprint()
            state = {"fingerprint": known, "pages": self._on_disk(names), **others}
            ledger.put(CLASS, state)

    def _submission(self, student: str) -> Submission:
        standing = self.standings.standing(student)
        if standing is None:
            raise DamagedRowError(f"{student} has no submission that is graded")
        return standing.submission

    def _write_marks(self) -> Summary:
        """Write the marks and results of all students; return what the dashboard shows."""
        names = self.standings.course.names
        with writing(self.out / GRADES) as grades, writing(self.out / RESULTS) as lines:

            def rows(reports: Iterable[Report]) -> Iterator[Report]:
                for report in reports:
                    with self.standings.ledger.review.errors_of(report.submission):
                        lines.write(to_json_line(report))
                    yield report

            counted = CountedClass(self.standings, self.standings.ledger.teams())
            reports = rows(counted.reports(self.standings.everybody()))
            write_csv(grades, names, self.standings.with_missing(reports))
        return counted.summary(dict(self.standings.ledger.missing()), self.standings.remarks)


class CountedClass:
    """The counts of a class for its dashboard, and the similar submissions in it.

    `teams` has the group of each student who hands in with one.
    """

    def __init__(self, standings: Standings, teams: Mapping[str, str]) -> None:
        course = standings.course
        self._title, self._tally = course.title, ClassTally(standings.named)
        self._errors_of = standings.ledger.review.errors_of
        self._similarity = Similarity(map(make_stub, course.exercises), self._errors_of)
        self._teams, self._compared = teams, set[str]()
        self._compares = len(standings.ledger.students()) <= MAX_COMPARED

    def reports(self, everybody: Iterable[tuple[Report, Mapping[str, str]]]) -> Iterator[Report]:
        """Count each report with its files, and yield it."""
        for report, files in everybody:
            student = report.submission
            with self._errors_of(student):
                name = f"{student}.html"
                self._tally.add(report, f"{REPORTS}/{name}", f"{CODE}/{name}" if files else "")
            team = self._teams.get(student, "")
            if self._compares and team not in self._compared:  # its members have the same files
                self._compared.update({team} - {""} if files else ())  # none if they are damaged
                with self._errors_of(student):
                    self._similarity.add(student, files)
            yield report

    def summary(self, missing: Mapping[str, Person], remarks: tuple[str, ...]) -> Summary:
        """Return what the dashboard shows."""
        found = self._tally.summary(self._title, missing, self._similarity.groups())
        return replace(found, remarks=remarks)


def write_dashboard(
    standings: Standings, out: Path, summary: Summary, submission: Callable[[str], Submission]
) -> None:
    """Write the page of the class, and those of similar submissions, read by `submission`."""
    summary = replace(summary, similar=_side_by_side(standings, out, summary.similar, submission))
    with writing(out / DASHBOARD) as page:
        page.write(dashboard.render(summary, standings.ledger.review.errors_of))


def code_page(standings: Standings, standing: Standing) -> str:
    """Return the page with a student's code, or one that says that it cannot be shown."""
    student = standing.report.submission
    with standings.ledger.review.errors_of(student):
        return code.render(view_of(standing.report, standing.submission))
    return code.render_missing(student)


def _side_by_side(
    standings: Standings,
    out: Path,
    groups: Iterable[SimilarGroup],
    submission: Callable[[str], Submission],
) -> tuple[SimilarGroup, ...]:
    """Write pages that show similar submissions side by side; return the groups with them."""
    for old in (out / SIMILAR).glob("[0-9]*-[0-9].html"):  # the groups may be others now
        with explained(old):
            old.unlink()
    course = standings.course
    common = [make_stub(exercise) for exercise in course.exercises]
    done = []
    for number, group in enumerate(groups, 1):
        pages: dict[tuple[str, str], str] = {}
        for place, pair in enumerate(group.shown if number <= MAX_GROUPS else (), 1):
            with standings.ledger.review.errors_of(pair[0]):
                name = f"{SIMILAR}/{number:03}-{place}.html"
                first, second = map(submission, pair)
                text = code.render_pair(pair_view(course, group.exercises, first, second, common))
                with writing(out / name) as file:
                    file.write(text)
                pages[pair] = name
        done.append(replace(group, shown=tuple(pages), pages=tuple(pages.values())))
    return tuple(done)


def _discard(drafts: Iterable[Draft]) -> None:
    for draft in drafts:
        draft.discard()


@contextlib.contextmanager
def writing(path: Path, later: list[Draft] | None = None) -> Iterator[TextIOWrapper]:
    """Open a file as `writing_whole` does; raise `RequestError` for an error of the disk."""
    with explained(path), writing_whole(path, later) as file:
        yield file


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise `RequestError` for an error of the disk in the block, unless it is of `path` alone."""
    try:
        yield
    except OSError as error:
        if error.errno in NAMED:
            raise
        raise RequestError(f"cannot write {path}: {error.strerror}", KEPT) from None
