"""The intake of a class: which attempts exist, whose they are, and which of them are graded."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from grader.classroom.ledger import Ledger
from grader.classroom.roster import Roster, RosterRow, read_roster
from grader.classroom.storage import FILE, settings_of
from grader.classroom.stored.submissions import AttemptRow
from grader.course.course import Course
from grader.errors import RequestError
from grader.scratch import scratch_folder
from grader.submissions.layouts import (
    Attempt,
    LeftOut,
    before_due,
    collect,
    find_attempts,
    open_submissions,
)
from grader.submissions.submission import Submission

READERS = 2  # attempts that are read at the same time; more make the order of work no faster
Which = Literal["latest", "best", "first", "all"]


@dataclass(frozen=True)
class IntakeRequest:
    """A request to grade submissions; `shard` (i, n) is the i-th of n parts, i from 1.

    With `before_due`, the last commit before a student's deadline is graded.
    """

    submissions: Path
    layout: str | None = None
    roster: Path | None = None
    attempt: Which = "latest"
    shard: tuple[int, int] | None = None
    before_due: bool = False


@dataclass(frozen=True)
class SelectedAttempt:
    """One attempt, with its row of the roster; `graded` says whether it is to be graded."""

    attempt: Attempt
    graded: bool
    listed: RosterRow | None = None
    latest: bool = True  # of this student's attempts, to which the roster's time belongs

    def row(self, submission: Submission) -> AttemptRow:
        """Return the attempt as the ledger stores it."""
        attempt, listed = self.attempt, self.listed
        known = asdict(listed.person) if listed else {}
        return AttemptRow(
            student=attempt.student,
            number=attempt.number,
            hash=submission.hash,
            person=replace(attempt.person, **{name: said for name, said in known.items() if said}),
            submitted=(self.latest and listed and listed.submitted) or attempt.submitted,
            due=listed.due if listed else None,
            late=attempt.late,
            paths=submission.paths,
            problems=submission.problems,
            notes=submission.notes,
            graded=self.graded,
        )


@dataclass(frozen=True)
class Intake:
    """A class's attempts, what was left out, and who of the roster is missing."""

    layout: str
    selected: tuple[SelectedAttempt, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[RosterRow, ...]
    ambiguous: tuple[str, ...] = ()  # students who fit several lines of the roster

    @property
    def students(self) -> int:
        """How many have handed in."""
        return len({one.attempt.student for one in self.selected})

    def read(self, course: Course) -> Iterator[tuple[SelectedAttempt, Submission]]:
        """Yield each attempt with its files."""
        for selected, submission in self._read_ahead(course):
            yield selected, submission()

    def _read_ahead(
        self, course: Course
    ) -> Iterator[tuple[SelectedAttempt, Callable[[], Submission]]]:
        """Yield each attempt, and a function that waits for its files; the next are read by then.

        What cannot be read on this machine is raised by that function.
        """
        readers = min(READERS, os.cpu_count() or 1)
        with ThreadPoolExecutor(readers, "reading") as pool:
            ahead: deque[tuple[SelectedAttempt, Future[Submission]]] = deque()
            try:
                for selected in self.selected:
                    ahead.append((selected, pool.submit(collect, selected.attempt, course)))
                    if len(ahead) > readers:
                        first, reading = ahead.popleft()
                        yield first, reading.result
                for first, reading in ahead:
                    yield first, reading.result
            finally:
                pool.shutdown(cancel_futures=True)

    def store(
        self, ledger: Ledger, course: Course, on_student: Callable[[str], None] = lambda name: None
    ) -> None:
        """Store all attempts or none; call `on_student` with each student before."""
        with ledger.taking_in():
            for selected, read in self._read_ahead(course):
                student = selected.attempt.student
                on_student(student)
                with ledger.review.sparing(student):
                    submission = read()
                    ledger.take(selected.row(submission), submission.files)
            for row in self.missing:
                with ledger.review.sparing(row.student):
                    ledger.miss(row.student, row.person)


def remembered_attempt(folder: Path | None) -> Which:
    """Return which attempt counts in a folder's class, as chosen before; `latest` in a new one."""
    if folder is None or not (folder / FILE).is_file():
        return "latest"
    return remembered_in(settings_of(folder / FILE).get("request"))


def remembered_in(request: object) -> Which:
    """Return which attempt counts by a ledger's setting, which may be missing or damaged."""
    chosen = request.get("attempt") if isinstance(request, dict) else None
    return next((which for which in get_args(Which) if which == chosen), "latest")


@contextlib.contextmanager
def open_intake(request: IntakeRequest, course: Course, out: Path | None) -> Iterator[Intake]:
    """Find the attempts; their files can be read inside the block. `out` is not a submission."""
    if out is not None and out.absolute() == request.submissions.absolute():
        raise RequestError(f"{out} holds the submissions", "--out another-folder")
    roster = read_roster(request.roster) if request.roster else Roster(())
    unopened: list[LeftOut] = []
    notes: dict[Path, tuple[str, ...]] = {}
    with (
        scratch_folder("commits") as unfolded,
        open_submissions(request.submissions, unopened, notes) as folder,
    ):
        found = find_attempts(folder, course, request.layout, out, notes)
        missing = roster.missing(row for each in found.attempts if (row := roster.find(each)))
        attempts = [each for each in found.attempts if _is_in_shard(each.student, request.shard)]
        selected = list(_selected(attempts, request.attempt, roster))
        if request.before_due:
            _require_clones(found.layout)
            selected = [
                _before_due(each, course, unfolded / str(number))
                for number, each in enumerate(selected)
            ]
        yield Intake(
            found.layout,
            tuple(selected),
            (*unopened, *found.left_out),
            tuple(row for row in missing if _is_in_shard(row.student, request.shard)),
            tuple(each.student for each in attempts if len(roster.matching(each)) > 1),
        )


def _selected(
    attempts: Sequence[Attempt], which: Which, roster: Roster
) -> Iterator[SelectedAttempt]:
    """Yield every attempt, and whether it is to be graded; `attempts` are sorted."""
    for _, group in groupby(attempts, key=lambda attempt: attempt.student):
        own = list(group)
        for attempt in own:
            latest = attempt is own[-1]
            graded = {"latest": latest, "first": attempt is own[0]}.get(which, True)
            yield SelectedAttempt(attempt, graded, roster.find(attempt), latest)


def _require_clones(layout: str) -> None:
    if layout != "clones":
        raise RequestError(
            f"--before-due looks for commits in git clones, and this is the {layout} layout",
            "leave out --before-due; --attempt first chooses the first of several attempts",
        )


def _before_due(selected: SelectedAttempt, course: Course, folder: Path) -> SelectedAttempt:
    """Return what was committed before a student's deadline, within the course's grace period."""
    due = (selected.listed and selected.listed.due) or course.policy.due
    if due is None:
        raise RequestError(
            f"--before-due needs a deadline, and {selected.attempt.student} has none",
            "set `due` in course.toml, or pass a roster with the column `due`",
        )
    attempt = before_due(selected.attempt, due + course.policy.grace, folder)
    return replace(selected, attempt=attempt)


def _is_in_shard(student: str, shard: tuple[int, int] | None) -> bool:
    """Return whether a student belongs to a shard; the same on every machine."""
    if shard is None:
        return True
    number, parts = shard
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % parts == number - 1
