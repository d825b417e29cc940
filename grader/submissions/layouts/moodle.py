"""Moodle, "Download all submissions": a folder for each student, or files with the same prefix.

`{full name}_{id}_assignsubmission_file/…`, in older versions with a `_` at the end, where folders
are turned off `…_assignsubmission_file_{file}`. A site may put `{username}_` before the name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.submissions.layouts.attempt import (
    TEXT_ENTRY,
    Attempt,
    Found,
    LeftOut,
    Listing,
    Part,
    student_names,
    unfit,
)
from grader.report import Person
from grader.submissions.submission import shown

NAMED = re.compile(
    r"(?P<name>.*?)(?:_(?P<id>[0-9]+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Entry:
    path: Path
    name: str
    id: str
    kind: str  # "file", "onlinetext", or of some other plugin
    file: str  # empty for a folder


def recognises(listing: Listing) -> bool:
    """Whether most entries are named as Moodle does."""
    return 2 * sum(_parsed(path) is not None for path in listing.entries) > len(listing.entries)


def read(listing: Listing, course: Course) -> Found:
    """One attempt of every student, or of every group where groups hand in."""
    students: dict[str, list[_Entry]] = defaultdict(list)
    left_out = []
    for path in listing.entries:
        entry = _parsed(path)
        if entry is None:
            left_out.append(LeftOut(shown(path.name), "is not named as Moodle names submissions"))
            continue
        students[entry.id or entry.name].append(entry)
        if entry.kind != "file":
            left_out.append(LeftOut(shown(path.name), "holds no files that were handed in"))
    names = student_names([(key, key) for key in students])
    return [_attempt(name, students[key]) for name, key in zip(names, students)], left_out


def _parsed(path: Path) -> _Entry | None:
    match = NAMED.fullmatch(path.name)
    if match is None or (not path.is_dir() and not match["file"]):
        return None
    return _Entry(path, match["name"], match["id"] or "", match["kind"], match["file"] or "")


def _attempt(student: str, entries: list[_Entry]) -> Attempt:
    # Moodle writes a full name without `_`: what stands before one is the user's name.
    login, _, name = entries[0].name.rpartition("_")
    notes, parts = [], []
    for entry in entries:
        if entry.kind == "onlinetext":
            notes.append(TEXT_ENTRY)
        elif entry.kind == "file" and entry.path.is_dir():
            parts.append(Part(entry.path, student))
        elif entry.kind == "file" and (why := unfit(entry.file)):
            notes.append(f"{shown(entry.file)} {why}")
        elif entry.kind == "file":
            parts.append(Part(entry.path, entry.file))
    person = Person(name=shown(name), login=shown(login))
    return Attempt(student, tuple(parts), person=person, notes=tuple(dict.fromkeys(notes)))
