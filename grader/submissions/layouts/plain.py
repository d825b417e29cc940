"""A plain folder: each student has a folder, a zip, a Python file or a notebook in it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.archives import is_archive, is_code_or_opened, without_suffix
from grader.submissions.code_files import MAX_NOTEBOOK_BYTES
from grader.submissions.folders import exercise_paths
from grader.submissions.layouts.attempt import (
    Attempt,
    AttemptPart,
    Listing,
    student_names,
    unsupported_note,
)
from grader.submissions.opening import Entry
from grader.submissions.reader.host import exercise_names
from grader.trees import NotOpened, read_file

MAX_LOOKED_AT = 20  # files that are read to tell a class from one submission


def recognises(listing: Listing) -> bool:
    """Return True: any folder that no platform made is read as a plain one."""
    return True


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return an attempt for every folder, archive, Python file and notebook.

    A file or folder of the course beside students' folders or zips belongs to nobody and is left
    out. Raises `RequestError` if there are no students' folders: then the folder is one
    submission.
    """
    exercises = _exercises_in(listing, course)
    others = [entry for entry in listing.entries if entry.name not in exercises]
    # A student may have named the only file like an exercise, and a submission may have helpers.
    several = any(entry.is_folder or is_archive(entry.name) for entry in others)
    if exercises and not several and len([*islice(_work(others, listing, course), 2)]) < 2:
        raise RequestError(
            f"{listing.folder} looks like one submission, not like a class: it holds "
            f"{next(iter(exercises.values()))}",
            f"grader check {listing.folder}",
        )
    for name in exercises:
        listing.leave_out(name, "is an exercise that lies beside the students' work")
    entries = []
    # The folder keeps its name if a file would have the same.
    for entry in sorted(others, key=lambda entry: not entry.is_folder):
        if entry.is_folder or is_code_or_opened(entry.name) or is_archive(entry.name):
            entries.append(entry)
        else:
            listing.leave_out(entry.name, "is neither a folder nor a zip")
    names = student_names(
        (entry.name if entry.is_folder else without_suffix(entry.name), entry.name)
        for entry in entries
    )
    return [_attempt(name, entry) for name, entry in zip(names, entries)]


def defined_of_course(data: bytes, course: Course) -> list[str]:
    """Return the exercises of which a file defines something; nobody parses it here."""
    return [each.name for each in exercise_names(course) if _defines(data, each.implements)]


def _defines(data: bytes, names: Sequence[str]) -> bool:
    asked = [name.encode() for name in names]
    if not any(word in data for word in asked):
        return False
    # In a notebook, a line begins after a quote or after `\n`.
    words = b"|".join(map(re.escape, asked))
    return re.search(rb"(?:def|class)[ \t]+(?:" + words + rb")\b", data) is not None


def _work(entries: Sequence[Entry], listing: Listing, course: Course) -> Iterator[Entry]:
    """Yield those of the first few files that are work for the course under another name."""
    for entry in [one for one in entries if is_code_or_opened(one.name)][:MAX_LOOKED_AT]:
        with contextlib.suppress(NotOpened, OSError):
            data = read_file(entry.path, listing.folder, MAX_NOTEBOOK_BYTES)
            if defined_of_course(data, course):
                yield entry


def _attempt(student: str, entry: Entry) -> Attempt:
    """Return the attempt in a file or folder; an archive that is not opened has no usable part."""
    if not entry.is_folder and (note := unsupported_note(entry.name)):
        return Attempt(student, (), notes=(note,))
    return Attempt(student, (AttemptPart(entry.path, entry.name),))


def _exercises_in(listing: Listing, course: Course) -> dict[str, str]:
    """Return the entries that are an exercise file or hold one, with the path of that file."""
    entries = {entry.name: entry for entry in listing.entries}
    found = {}
    for path in (path for name in course.names for path in exercise_paths(name)):
        top, _, inner = path.partition("/")
        entry = entries.get(top)
        if entry is None or entry.is_folder != bool(inner):
            continue
        if not inner or os.path.lexists(entry.path / inner):
            found[top] = path
    return found
