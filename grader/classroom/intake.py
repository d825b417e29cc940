"""What a class handed in, and what of it is to be graded: looked at first, then kept.

Nothing is run here. What is taken for whom, and what is left out and why, can be said before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from grader.submissions import layouts
from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts import Attempt, LeftOut
from grader.classroom.ledger import FILE, Entry, Ledger, settings_of
from grader.report import Person
from grader.classroom.roster import Entry as Listed
from grader.classroom.roster import Roster, read_roster
from grader.submissions.submission import Submission

Which = Literal["latest", "best", "first", "all"]


@dataclass(frozen=True)
class Request:
    """What is asked for: which submissions, whose, and of several attempts which count.

    `shard` (i, n) is the i-th of n parts of the class, i from 1.
    """

    submissions: Path
    layout: str | None = None
    roster: Path | None = None
    attempt: Which = "latest"
    shard: tuple[int, int] | None = None


@dataclass(frozen=True)
class Taken:
    """One attempt, with what the roster adds; `graded` says whether it is to be graded."""

    attempt: Attempt
    graded: bool
    listed: Listed | None = None
    latest: bool = True  # of this student's attempts, to which the roster's time belongs

    def entry(self, submission: Submission) -> Entry:
        """The attempt as the ledger holds it."""
        attempt, listed = self.attempt, self.listed
        return Entry(
            student=attempt.student,
            number=attempt.number,
            hash=submission.hash,
            person=_merged(attempt.person, listed.person if listed else Person()),
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
    """A class as it was handed in: by whom, what was left out, and who of the roster is missing."""

    layout: str
    taken: tuple[Taken, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[Listed, ...]
    unsure: tuple[str, ...] = ()  # students who fit several lines of the roster

    @property
    def students(self) -> int:
        """How many have handed in."""
        return len({taken.attempt.student for taken in self.taken})

    def read(self, course: Course) -> Iterator[tuple[Taken, Submission]]:
        """Each attempt with its files."""
        for taken in self.taken:
            yield taken, layouts.collect(taken.attempt, course)

    def keep(
        self, ledger: Ledger, course: Course, told: Callable[[str], None] = lambda name: None
    ) -> None:
        """Read every attempt into the ledger; `told` of each student. All of it, or nothing."""
        with ledger.taking_in():
            for taken, submission in self.read(course):
                told(taken.attempt.student)
                ledger.take(taken.entry(submission), submission.files)
            for listed in self.missing:
                ledger.miss(listed.student, listed.person)


def kept_attempt(folder: Path | None) -> Which:
    """Which attempt counts in a folder's class, as was said before; the latest in a new one."""
    if folder is None or not (folder / FILE).is_file():
        return "latest"
    request = json.loads(settings_of(folder / FILE).get("request", "{}"))
    which: Which = request.get("attempt", "latest")
    return which


@contextlib.contextmanager
def looked_at(request: Request, course: Course, out: Path | None) -> Iterator[Intake]:
    """What was handed in; the files can be read for as long as the block lasts.

    `out`, where results go, may lie beneath the submissions, and is none of them.
    """
    if out is not None and out.absolute() == request.submissions.absolute():
        raise RequestError(f"{out} holds the submissions", "--out another-folder")
    roster = read_roster(request.roster) if request.roster else None
    unopened: list[LeftOut] = []
    with layouts.opened(request.submissions, unopened) as folder:
        handed = layouts.survey(folder, course, request.layout, out)
        attempts = [a for a in handed.attempts if _is_in(a.student, request.shard)]
        yield Intake(
            handed.layout,
            tuple(_chosen(attempts, request.attempt, roster)),
            (*unopened, *handed.left_out),
            tuple(_missing(handed.attempts, roster, request.shard)),
            tuple(a.student for a in attempts if roster and len(roster.fitting(a)) > 1),
        )


def _chosen(attempts: Sequence[Attempt], which: Which, roster: Roster | None) -> Iterator[Taken]:
    """Each attempt, and whether it is one that is graded."""
    numbers: dict[str, list[int]] = {}
    for attempt in attempts:
        numbers.setdefault(attempt.student, []).append(attempt.number)
    for attempt in attempts:
        of = numbers[attempt.student]
        latest = attempt.number == max(of)
        graded = {"latest": latest, "first": attempt.number == min(of)}
        listed = roster.find(attempt) if roster else None
        yield Taken(attempt, graded.get(which, True), listed, latest)


def _missing(
    attempts: Sequence[Attempt], roster: Roster | None, shard: tuple[int, int] | None
) -> list[Listed]:
    if roster is None:
        return []
    found = [listed for attempt in attempts if (listed := roster.find(attempt))]
    return [listed for listed in roster.missing(found) if _is_in(listed.student, shard)]


def _is_in(student: str, shard: tuple[int, int] | None) -> bool:
    """Whether a student belongs to a part of the class, wherever that is worked out."""
    if shard is None:
        return True
    number, parts = shard
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % parts == number - 1


def _merged(person: Person, listed: Person) -> Person:
    """What the roster says of a person, and what only the platform says."""
    said = {f.name: getattr(listed, f.name) for f in fields(Person) if getattr(listed, f.name)}
    return replace(person, **said)
