"""The intake of a class: its attempts, their owners, and the choice of those that are graded."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from grader.classroom.groups import (
    Member,
    Shared,
    find_members,
    groups_of,
    merged,
    read_groups,
    share,
)
from grader.classroom.ledger import Ledger
from grader.classroom.roster import NO_ROSTER, Roster, RosterRow, read_roster
from grader.classroom.storage import FILE, settings_of
from grader.classroom.stored.submissions import AttemptRow, Origin
from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts import (
    Attempt,
    LeftOut,
    before_due,
    collect,
    find_attempts,
    open_submissions,
    unread,
)
from grader.submissions.notes import folded
from grader.submissions.submission import Submission

MAX_NAMED = 5  # lines of one name
READERS = 2  # attempts that are read at the same time; more make the order of work no faster
# Most attempts are read in a hundredth of a second. For each student, those that take longer than
# the first number of seconds may take the second number together, and, with those that are graded,
# the last number, which is more than one of them can take.
SLOW, MOST_SLOW, MOST_SLOW_GRADED = 2.0, 30.0, 120.0
TOO_SLOW = "not read, because earlier attempts took too long to read; hand in plain files"
SEVERAL = "fits several lines of the roster, so none was used"
MAY_HAVE = "may have handed in, because a hand-in that was not used fits this line of the roster"
ROSTER, GROUPS = "roster", "groups"  # the settings with the lists of the class
Which = Literal["latest", "best", "first", "all"]


@dataclass(frozen=True)
class Kept:
    """The choices that a folder of results remembers: they count unless others are made."""

    roster: Roster = NO_ROSTER
    groups: Roster = NO_ROSTER
    attempt: Which = "latest"
    before_due: bool = False


@dataclass(frozen=True)
class IntakeRequest:
    """A request to grade submissions.

    With `before_due`, the last commit before a student's deadline is graded.
    """

    submissions: Path
    layout: str | None = None
    roster: Path | None = None
    groups: Path | None = None
    kept: Kept = field(default_factory=Kept)
    attempt: Which = "latest"
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
        return AttemptRow(
            student=attempt.student,
            number=attempt.number,
            hash=submission.hash,
            person=merged(attempt.person, listed),
            submitted=(self.latest and listed and listed.submitted) or attempt.submitted,
            due=listed.due if listed else None,
            late=attempt.late,
            paths=submission.paths,
            problems=submission.problems,
            notes=submission.notes,
            graded=self.graded,
        )

    def origin(self, layout: str) -> Origin:
        """Return where the attempt lies in the download, which has this layout."""
        root = self.attempt.root
        paths = (part.path for part in self.attempt.parts)
        return Origin(
            layout, tuple(str(path.relative_to(root) if root else path) for path in paths)
        )


@dataclass(frozen=True)
class Intake:
    """A class's attempts, what was left out, and who of the roster is missing.

    `flags` has each student's reasons for review, `teams` the group of every student who is in
    one. `said` has the problems of roster and groups.
    """

    layout: str
    selected: tuple[SelectedAttempt, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[Member, ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    teams: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    roster: Roster = NO_ROSTER
    groups: Roster = NO_ROSTER  # the rows of a file of groups

    @property
    def students(self) -> int:
        """The number of students who have handed in."""
        return len({one.attempt.student for one in self.selected})

    def read(self, course: Course) -> Iterator[tuple[SelectedAttempt, Submission]]:
        """Yield each attempt with its files."""
        for selected, submission in self._read_ahead(course):
            yield selected, submission()

    def _read_ahead(
        self, course: Course
    ) -> Iterator[tuple[SelectedAttempt, Callable[[], Submission]]]:
        """Yield each attempt, and a function that waits for its files while the next ones are read.

        That function raises the errors of this machine.
        """
        readers, reading = min(READERS, os.cpu_count() or 1), _Reading(course)
        with ThreadPoolExecutor(readers, "reading") as pool:
            ahead: deque[tuple[SelectedAttempt, Future[Submission]]] = deque()
            try:
                for selected in self.selected:
                    ahead.append((selected, pool.submit(reading.read, selected)))
                    if len(ahead) > readers:
                        first, future = ahead.popleft()
                        yield first, future.result
                for first, future in ahead:
                    yield first, future.result
            finally:
                pool.shutdown(cancel_futures=True)

    def store(
        self, ledger: Ledger, course: Course, on_student: Callable[[str], None] = lambda name: None
    ) -> None:
        """Store all attempts or none; call `on_student` with each student before.

        If the grader fails to take in an attempt, its student is named, and keeps earlier data.
        """
        with ledger.taking_in():
            ledger.put(ROSTER, self.roster.to_setting())
            ledger.put(GROUPS, self.groups.to_setting())
            for selected, read in self._read_ahead(course):
                student = selected.attempt.student
                on_student(student)
                is_taken = False
                with ledger.review.errors_of(student):
                    submission = read()
                    origin = selected.origin(self.layout)
                    ledger.take(selected.row(submission), submission.files, origin)
                    is_taken = True
                if not is_taken:
                    ledger.keep(student, selected.attempt.number)
            for member in self.missing:
                with ledger.review.errors_of(member.student):
                    ledger.miss(member.student, member.person)
            for student in sorted({*self.flags, *self.teams}):
                with ledger.review.errors_of(student):
                    flags = self.flags.get(student, ())
                    ledger.remark(student, self.teams.get(student, ""), flags)


class _Reading:
    """The reading of attempts; a student whose files take long does not keep the class waiting."""

    def __init__(self, course: Course) -> None:
        self._course, self._slow = course, defaultdict[str, float](float)  # seconds by student

    def read(self, selected: SelectedAttempt) -> Submission:
        attempt, most = selected.attempt, MOST_SLOW_GRADED if selected.graded else MOST_SLOW
        if self._slow[attempt.student] >= most:
            return unread(attempt, self._course, TOO_SLOW)
        start = time.monotonic()
        try:
            return collect(attempt, self._course)
        finally:
            if (seconds := time.monotonic() - start) > SLOW:
                self._slow[attempt.student] += seconds


def remembered(folder: Path | None) -> Kept:
    """Return the choices made before for a folder's class."""
    if folder is None or not (folder / FILE).is_file():
        return Kept()
    settings = settings_of(folder / FILE)
    roster, groups = (Roster.from_setting(settings.get(key)) for key in (ROSTER, GROUPS))
    request = settings.get("request")
    before_due = isinstance(request, dict) and request.get("before_due") == "yes"
    return Kept(roster, groups, remembered_in(request), before_due)


def remembered_in(request: object) -> Which:
    """Return the attempt that counts by a ledger's setting, which may be missing or damaged."""
    chosen = request.get("attempt") if isinstance(request, dict) else None
    return next((which for which in get_args(Which) if which == chosen), "latest")


@contextlib.contextmanager
def open_intake(request: IntakeRequest, course: Course, out: Path | None) -> Iterator[Intake]:
    """Find the attempts; their files can be read inside the block. `out` is not a submission."""
    if out is not None and out.absolute() == request.submissions.absolute():
        raise RequestError(f"{out} holds the submissions", "--out another-folder")
    zone = course.policy.zone
    roster = request.kept.roster
    if request.roster:
        read = read_roster(request.roster, zone)
        roster = replace(read, rows=tuple(row.doubted(course.policy.due) for row in read.rows))
    chosen = read_groups(request.groups, zone) if request.groups else request.kept.groups
    groups = chosen if chosen.rows else groups_of(roster)
    timed = replace(roster, rows=tuple(row.with_extra(course.policy) for row in roster.rows))
    unopened: list[LeftOut] = []
    notes: dict[Path, tuple[str, ...]] = {}
    with open_submissions(request.submissions, unopened, notes) as folder:
        found = find_attempts(folder, course, request.layout, out, notes)
        members = find_members(found.attempts, timed)
        shared = share(members, groups, chosen=bool(chosen.rows))
        check_roster(shared, roster)
        selected = list(_selected(shared.members, request.attempt))
        if request.before_due:
            _require_clones(found.layout)
            selected = [_before_due(each, course) for each in selected]
        yield Intake(
            found.layout,
            tuple(selected),
            (*unopened, *found.left_out),
            tuple(member for member in shared.members if not member.attempts),
            {student: tuple(flags) for student, flags in shared.flags.items() if flags},
            shared.teams,
            tuple(shared.said),
            roster,
            chosen,
        )


def check_roster(shared: Shared, roster: Roster) -> None:
    """Flag students whom the roster does not know or cannot tell apart, and name them."""
    handed_in = [member for member in shared.members if member.attempts]
    taken = {member.row.student for member in handed_in if member.row}
    unknown, renumbered = [], []
    for member in handed_in:
        fitting = [] if member.row else roster.matching(member.attempts[-1])
        why = member.claims or (SEVERAL if fitting else "")
        if why:
            lines = "" if member.claims else f": {_lines_of(fitting)}"
            shared.said.append(f"{member.who} {why}{lines}")
            shared.flags[member.student].append(why)
        elif member.row is None and roster.rows:
            unknown.append(member.who)
            shared.flags[member.student].append("on no line of the roster")
        elif member.row:
            if number := member.row.number_of(member.attempts[-1]):
                renumbered.append(f"{member.who} is {number}")
            if member.row.unread:
                shared.said.append(f"{member.who}: {member.row.unread}")
                shared.flags[member.student].append(member.row.unread)
        for row in fitting:  # who may have handed in gets no points for handing in nothing
            if row.student not in taken:
                shared.flags[row.student] = [MAY_HAVE]
        _check_name(member, roster, shared)
    if unknown:
        shared.said.append(f"{len(unknown)} on no line of the roster: {folded(unknown)}")
    if renumbered:
        found = f"{len(renumbered)} found by a number without the 0 at its start"
        shared.said.append(f"{found}: {folded(renumbered, MAX_NAMED)}")


def _lines_of(rows: Sequence[RosterRow]) -> str:
    return folded([f"line {row.line} ({row.student})" for row in rows], MAX_NAMED)


def _check_name(member: Member, roster: Roster, shared: Shared) -> None:
    """Flag a student whose name is in the roster twice.

    Students read their flags, so only the console names the other students of this name.
    """
    if rows := roster.namesakes(member.person.name):
        flag = f"the roster has the name {member.person.name} more than once"
        shared.flags[member.student].append(flag)
        says = f"{flag}: {_lines_of(rows)}"
        if says not in shared.said:
            shared.said.append(says)


def _selected(members: Sequence[Member], which: Which) -> Iterator[SelectedAttempt]:
    """Yield every attempt in the order of students, and whether it is to be graded."""
    for member in sorted(members, key=lambda member: member.student):
        for attempt in member.attempts:
            latest, first = attempt is member.attempts[-1], attempt is member.attempts[0]
            graded = {"latest": latest, "first": first}.get(which, True)
            yield SelectedAttempt(attempt, graded, member.row, latest)


def _require_clones(layout: str) -> None:
    if layout != "clones":
        raise RequestError(
            f"--before-due looks for commits in git clones, and this is the {layout} layout",
            "leave out --before-due; --attempt first chooses the first of several attempts",
        )


def _before_due(selected: SelectedAttempt, course: Course) -> SelectedAttempt:
    """Return what was committed before a student's deadline, within the course's grace period."""
    due = (selected.listed and selected.listed.due) or course.policy.due
    if due is None:
        raise RequestError(
            f"--before-due needs a deadline, and {selected.attempt.student} has none",
            "set `due` in course.toml, or pass a roster with the column `due`",
        )
    attempt = before_due(selected.attempt, due + course.policy.grace)
    return replace(selected, attempt=attempt)
