"""Gradescope, "Download Submissions": `submission_{id}/…`, and a file that says whose they are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from grader.course.course import Course
from grader.submissions.layouts.attempt import Attempt, Found, LeftOut, Listing, Part, student_names, unfit
from grader.submissions.layouts.gradescope_metadata import METADATA, Record, Unreadable, read_metadata
from grader.report import Person
from grader.submissions.submission import shown

FOLDER = re.compile(r"submission_([0-9]+)(?:\.\w+)?")
EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Submitted:
    """A submission as one of its submitters handed it in."""

    path: Path
    person: Person
    created: datetime | None

    @property
    def id(self) -> str:
        """The platform's own number of the submission."""
        match = FOLDER.fullmatch(self.path.name)
        return match[1] if match else self.path.stem

    @property
    def identity(self) -> str:
        """What tells a submitter from every other; a school's number can be a submission's too."""
        if self.person.email:
            return f"email {self.person.email.casefold()}"
        return f"number {self.person.number}" if self.person.number else f"submission {self.id}"

    @property
    def order(self) -> tuple[datetime, int, str]:
        """Oldest first; without times, as they were numbered."""
        return self.created or EARLIEST, len(self.id), self.id


def recognises(listing: Listing) -> bool:
    """Whether the metadata is there, or most entries are named as Gradescope does."""
    named = sum(path.is_dir() and bool(FOLDER.fullmatch(path.name)) for path in listing.entries)
    there = any(path.name == METADATA for path in listing.entries)
    return there or 2 * named > len(listing.entries)


def read(listing: Listing, course: Course) -> Found:
    """The attempts of every submitter, in the order of their times."""
    records, left_out = _records(listing)
    students: dict[str, list[_Submitted]] = defaultdict(list)
    for path in listing.entries:
        if path.name == METADATA:
            continue
        if path.name not in records and not FOLDER.fullmatch(path.name):
            left_out.append(LeftOut(shown(path.name), "is not named as Gradescope names them"))
            continue
        record = records.pop(path.name, Record((), None))
        for person in record.submitters or (Person(),):
            submitted = _Submitted(path, person, record.created)
            students[submitted.identity].append(submitted)
    left_out += [LeftOut(shown(name), f"is in {METADATA}, but not here") for name in records]
    return _attempts(students), left_out


def _records(listing: Listing) -> tuple[dict[str, Record], list[LeftOut]]:
    if not any(path.name == METADATA for path in listing.entries):
        return {}, []
    try:
        return read_metadata(listing.folder / METADATA), []
    except Unreadable as error:
        why = f"{error}: students are called by the numbers of their submissions"
        return {}, [LeftOut(METADATA, why)]


def _attempts(students: dict[str, list[_Submitted]]) -> list[Attempt]:
    names = student_names(_claims(students))
    attempts = []
    for name, (_, handed) in zip(names, sorted(students.items())):
        for number, submitted in enumerate(sorted(handed, key=lambda one: one.order), start=1):
            attempts.append(_attempt(submitted, name, number))
    return attempts


def _claims(students: dict[str, list[_Submitted]]) -> list[tuple[str, str]]:
    """What each would be called: by the school's number if it is theirs alone, or the address."""
    numbers = Counter(
        number
        for handed in students.values()
        for number in {submitted.person.number for submitted in handed}
    )
    claims = []
    for identity, handed in sorted(students.items()):
        known = _first(submitted.person.number for submitted in handed)
        email = _first(submitted.person.email for submitted in handed)
        number = known if numbers[known] == 1 else ""
        claims.append((number or email or handed[0].id, identity))
    return claims


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _attempt(submitted: _Submitted, student: str, number: int) -> Attempt:
    path, attempt = submitted.path, Attempt(student, (), number, submitted.person)
    attempt = replace(attempt, submitted=submitted.created)
    if not path.is_dir() and (why := unfit(path.name)):
        return replace(attempt, notes=(f"{shown(path.name)} {why}",))
    return replace(attempt, parts=(Part(path, path.name),))
