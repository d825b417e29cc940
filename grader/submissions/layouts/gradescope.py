"""Gradescope, "Download Submissions": `submission_{id}/…`, and a file that names the submitters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts.attempt import (
    Attempt,
    AttemptPart,
    Listing,
    student_names,
    unsupported_note,
)
from grader.submissions.layouts.gradescope_metadata import (
    METADATA,
    SubmissionMetadata,
    UnreadableMetadata,
    read_metadata,
)

FOLDER = re.compile(r"submission_([0-9]+)(?:\.\w+)?")
EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Submitted:
    """A submission, and one of the people who handed it in."""

    path: Path
    person: Person
    created: datetime | None

    @property
    def id(self) -> str:
        match = FOLDER.fullmatch(self.path.name)
        return match[1] if match else self.path.stem

    @property
    def identity(self) -> str:
        """A text of this person only; its first word says where it comes from."""
        if self.person.email:
            return f"email {self.person.email.casefold()}"
        return f"number {self.person.number}" if self.person.number else f"submission {self.id}"

    @property
    def order(self) -> tuple[datetime, int, str]:
        """A sort key, oldest first; submissions without a time are sorted by number."""
        return self.created or EARLIEST, len(self.id), self.id


def recognises(listing: Listing) -> bool:
    """Return whether there is metadata, or most entries have a name as Gradescope writes it."""
    return listing.folder / METADATA in listing.entries or listing.mostly(
        lambda path: path.is_dir() and bool(FOLDER.fullmatch(path.name))
    )


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return the attempts of every submitter, in the order of their times."""
    metadata = _metadata(listing)
    students: dict[str, list[_Submitted]] = defaultdict(list)
    for path in listing.entries:
        if path.name == METADATA:
            continue
        if path.name not in metadata and not FOLDER.fullmatch(path.name):
            listing.leave_out(path.name, "is not named as Gradescope names submissions")
            continue
        record = metadata.pop(path.name, SubmissionMetadata())
        for person in record.submitters or (Person(),):
            submitted = _Submitted(path, person, record.created)
            students[submitted.identity].append(submitted)
    for name in metadata:
        listing.leave_out(name, f"is listed in {METADATA} but missing from the folder")
    return _attempts(students)


def _metadata(listing: Listing) -> dict[str, SubmissionMetadata]:
    path = listing.folder / METADATA
    try:
        return read_metadata(path) if path in listing.entries else {}
    except UnreadableMetadata as error:
        listing.leave_out(METADATA, f"{error}, so students are named by their submission numbers,")
        return {}


def _attempts(students: dict[str, list[_Submitted]]) -> list[Attempt]:
    names = student_names(_claims(students))
    return [
        _attempt(submitted, name, number)
        for name, (_, own) in zip(names, sorted(students.items()))
        for number, submitted in enumerate(sorted(own, key=lambda one: one.order), start=1)
    ]


def _claims(students: dict[str, list[_Submitted]]) -> Iterator[tuple[str, str]]:
    """Yield each student's claim to a name: a school number that is unique, else the email."""
    numbers = Counter(
        number for own in students.values() for number in {one.person.number for one in own}
    )
    for identity, own in sorted(students.items()):
        number = _first(one.person.number for one in own)
        email = _first(one.person.email for one in own)
        yield (number if numbers[number] == 1 else "") or email or own[0].id, identity


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _attempt(submitted: _Submitted, student: str, number: int) -> Attempt:
    path = submitted.path
    note = "" if path.is_dir() else unsupported_note(path.name)
    parts = () if note else (AttemptPart(path, path.name),)
    notes = (note,) if note else ()
    return Attempt(student, parts, number, submitted.person, submitted.created, notes=notes)
