"""Gradescope, "Download Submissions": `submission_{id}/…`, and a file that names the submitters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.course.course import Course
from grader.report import Person
from grader.submissions.archives import without_suffix
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
from grader.submissions.opening import Entry

FOLDER = re.compile(r"submission_([0-9]+)(?:\.\w+){0,2}")
EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Submitted:
    """A submission, and one of the people who handed it in."""

    entry: Entry
    person: Person
    created: datetime | None

    @property
    def id(self) -> str:
        match = FOLDER.fullmatch(self.entry.name)
        return match[1] if match else without_suffix(self.entry.name)

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
    """Return whether most entries have a name as Gradescope writes it.

    Without the metadata only folders count, since a student's own file may have such a name.
    """
    has_metadata = _has_metadata(listing)
    return any(map(_is_named, listing.entries)) and listing.mostly(
        lambda entry: (
            _is_metadata(entry) or (_is_named(entry) and (has_metadata or entry.is_folder))
        )
    )


def _is_named(entry: Entry) -> bool:
    return bool(FOLDER.fullmatch(entry.name))


def _is_metadata(entry: Entry) -> bool:
    return entry.name == METADATA and not entry.is_folder


def _has_metadata(listing: Listing) -> bool:
    return any(map(_is_metadata, listing.entries))


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return the attempts of every submitter, in the order of their times."""
    metadata = _metadata(listing)
    students: dict[str, list[_Submitted]] = defaultdict(list)
    for entry in listing.entries:
        if entry.name == METADATA:
            continue
        if entry.name not in metadata and not _is_named(entry):
            listing.leave_out(entry.name, "is not named as Gradescope names submissions")
            continue
        record = metadata.pop(entry.name, SubmissionMetadata())
        for person in record.submitters or (Person(),):
            submitted = _Submitted(entry, person, record.created)
            students[submitted.identity].append(submitted)
    for name in metadata:
        listing.leave_out(name, f"is listed in {METADATA} but missing from the folder")
    return _attempts(students)


def _metadata(listing: Listing) -> dict[str, SubmissionMetadata]:
    try:
        return read_metadata(listing.folder / METADATA) if _has_metadata(listing) else {}
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
    entry = submitted.entry
    note = "" if entry.is_folder else unsupported_note(entry.name)
    parts = () if note else (AttemptPart(entry.path, entry.name),)
    notes = (note,) if note else ()
    return Attempt(student, parts, number, submitted.person, submitted.created, notes=notes)
