"""Moodle, "Download all submissions": a folder for each student, or files with the same prefix.

A folder is called `{full name}_{id}_assignsubmission_file`, with a `_` at the end in older
versions. Without folders, a file is called `…_assignsubmission_file_{file}`. A site may write
`{username}_` before the name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts.attempt import (
    TEXT_ENTRY,
    Attempt,
    AttemptPart,
    Listing,
    student_names,
    unsupported_note,
)
from grader.submissions.notes import printable_name

NAMED = re.compile(
    r"(?P<name>.*?)(?:_(?P<id>[0-9]+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class _MoodleEntry:
    path: Path
    name: str
    id: str
    kind: str  # "file", "onlinetext" or that of another plugin
    file: str  # empty for a folder


def recognises(listing: Listing) -> bool:
    """Return whether most entries have a name as Moodle writes it."""
    return listing.mostly(lambda path: _parse(path) is not None)


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return one attempt for each student, or for each group if groups hand in."""
    students: dict[str, list[_MoodleEntry]] = defaultdict(list)
    for path in listing.entries:
        entry = _parse(path)
        if entry is None:
            listing.leave_out(path.name, "is not named as Moodle names submissions")
            continue
        students[entry.id or entry.name].append(entry)
        if entry.kind != "file":
            listing.leave_out(path.name, "holds no files that were handed in")
    names = student_names((key, key) for key in students)
    return [_attempt(name, entries) for name, entries in zip(names, students.values())]


def _parse(path: Path) -> _MoodleEntry | None:
    match = NAMED.fullmatch(path.name)
    if match is None or (not path.is_dir() and not match["file"]):
        return None
    return _MoodleEntry(path, **match.groupdict(""))


def _attempt(student: str, entries: list[_MoodleEntry]) -> Attempt:
    # Moodle's full names hold no `_`, so any text before one is the username.
    login, _, name = entries[0].name.rpartition("_")
    notes, parts = [], []
    for entry in entries:
        if entry.kind == "onlinetext":
            notes.append(TEXT_ENTRY)
        elif entry.kind == "file" and entry.path.is_dir():
            parts.append(AttemptPart(entry.path, student))
        elif entry.kind == "file" and (note := unsupported_note(entry.file)):
            notes.append(note)
        elif entry.kind == "file":
            parts.append(AttemptPart(entry.path, entry.file))
    person = Person(name=printable_name(name), login=printable_name(login))
    return Attempt(student, tuple(parts), person=person, notes=tuple(dict.fromkeys(notes)))
