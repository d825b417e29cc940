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
from grader.submissions.opening import Entry

MARKER = "_assignsubmission_"
OWNER = re.compile(r"(?P<name>.*?)(?:_(?P<id>[0-9]+))?", re.DOTALL)
CONTENT = re.compile(r"(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL)


@dataclass(frozen=True)
class _MoodleEntry:
    path: Path
    is_folder: bool
    name: str
    id: str
    kind: str  # "file", "onlinetext" or that of another plugin
    file: str  # empty for a folder


def recognises(listing: Listing) -> bool:
    """Return whether most entries have a name as Moodle writes it."""
    return listing.mostly(lambda entry: _parse(entry) is not None)


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return one attempt for each student, or for each group if groups hand in."""
    students: dict[str, list[_MoodleEntry]] = defaultdict(list)
    for found in listing.entries:
        entry = _parse(found)
        if entry is None:
            listing.leave_out(found.name, "is not named as Moodle names submissions")
        elif _is_ambiguous(found):
            listing.leave_out(found.name, "is named so that it could belong to two students")
        else:
            students[f"id {entry.id}" if entry.id else f"name {entry.name}"].append(entry)
            if entry.kind != "file":
                listing.leave_out(found.name, "holds no files that were handed in")
    names = student_names((own[0].id or own[0].name, key) for key, own in students.items())
    return [_attempt(name, entries) for name, entries in zip(names, students.values())]


def _parse(entry: Entry) -> _MoodleEntry | None:
    """Split a name at its last marker: a student's own name may hold a marker too."""
    before, marker, after = entry.name.rpartition(MARKER)
    if not marker:
        return None
    owner, content = OWNER.fullmatch(before), CONTENT.fullmatch(after)
    if owner is None or content is None:
        return None
    if not entry.is_folder and not content["file"]:
        return None
    return _MoodleEntry(entry.path, entry.is_folder, **owner.groupdict(""), **content.groupdict(""))


def _is_ambiguous(entry: Entry) -> bool:
    """Return whether the name of a file, which a student chose, may hold a marker of its own."""
    return not entry.is_folder and entry.name.count(MARKER) > 1


def _attempt(student: str, entries: list[_MoodleEntry]) -> Attempt:
    # Moodle's full names hold no `_`, so any text before one is the username.
    login, _, name = entries[0].name.rpartition("_")
    notes, parts = [], []
    for entry in entries:
        if entry.kind == "onlinetext":
            notes.append(TEXT_ENTRY)
        elif entry.kind == "file" and entry.is_folder:
            parts.append(AttemptPart(entry.path, student))
        elif entry.kind == "file" and (note := unsupported_note(entry.file)):
            notes.append(note)
        elif entry.kind == "file":
            parts.append(AttemptPart(entry.path, entry.file))
    person = Person(name=printable_name(name), login=printable_name(login))
    return Attempt(student, tuple(parts), person=person, notes=tuple(dict.fromkeys(notes)))
