"""Canvas, "Download Submissions": one flat folder of files named after student and attachment.

`{name}[_LATE]_{user}_{attachment}_{file}` or, graded anonymously,
`[LATE_]anon_{id}_{attachment}_{file}`. The name is the sortable one in lower case, without anything
but word characters. Text entries and links have no attachment: `…_{user}_text.html`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.submissions.layouts.attempt import (
    LINK_ENTRY,
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
from grader.submissions.submission import CODE, shown

WHAT = r"_(?:(?P<attachment>[0-9]+)_(?P<file>.+)|(?P<entry>text|link)\.html)"
NAMED = re.compile(rf"(?P<name>.*?)(?P<late>_LATE)?_(?P<user>[0-9]+){WHAT}", re.DOTALL)
ANONYMOUS = re.compile(rf"(?P<late>LATE_)?(?P<user>anon_[0-9A-Za-z]{{5}}){WHAT}", re.DOTALL)
AGAIN = re.compile(r"(?P<stem>.+)-(?P<version>[1-9][0-9]{0,3})", re.DOTALL)
ENTRIES = {"text": TEXT_ENTRY, "link": LINK_ENTRY}


@dataclass(frozen=True)
class _File:
    """One file of the download, as its name tells; `entry` is "text" or "link" if it is such."""

    path: Path
    user: str
    name: str
    late: bool
    attachment: int
    file: str
    entry: str


def recognises(listing: Listing) -> bool:
    """Whether most entries are named as Canvas does."""
    return 2 * sum(_parsed(path) is not None for path in listing.entries) > len(listing.entries)


def read(listing: Listing, course: Course) -> Found:
    """The attempts of every student: later versions of a file are later attempts."""
    students: dict[str, list[_File]] = defaultdict(list)
    left_out = []
    for path in listing.entries:
        if file := _parsed(path):
            students[file.user].append(file)
            if file.entry:
                left_out.append(LeftOut(shown(path.name), f"is a {file.entry} entry"))
        else:
            left_out.append(LeftOut(shown(path.name), "is not named as Canvas names files"))
    names = student_names([(user, user) for user in students])
    attempts = [
        attempt
        for student, files in zip(names, students.values())
        for attempt in _attempts(student, files, course)
    ]
    return attempts, left_out


def _parsed(path: Path) -> _File | None:
    match = ANONYMOUS.fullmatch(path.name) or NAMED.fullmatch(path.name)
    if match is None or path.is_dir():
        return None
    said = match.groupdict()
    name = said.get("name") or ""
    if not all(_is_word(letter) for letter in name):
        return None
    return _File(
        path=path,
        user=said["user"],
        name=name,
        late=bool(said["late"]),
        attachment=int((said["attachment"] or "0")[:40]),
        file=said["file"] or "",
        entry=said["entry"] or "",
    )


def _is_word(letter: str) -> bool:
    """Whether a letter may be in a name there: also a vowel sign or an accent of its own."""
    return letter.isalnum() or letter == "_" or unicodedata.category(letter).startswith("M")


def _attempts(student: str, files: Sequence[_File], course: Course) -> Iterator[Attempt]:
    person = Person(name=shown(files[0].name))
    late = {file.path for file in files if file.late}
    notes = [ENTRIES[file.entry] for file in files if file.entry]
    handed = sorted((file for file in files if file.file), key=lambda file: file.attachment)
    notes += [f"{shown(file.file)} {why}" for file in handed if (why := unfit(file.file))]
    handed = [file for file in handed if not unfit(file.file)]
    for number, parts in enumerate(_by_version(handed, course) or [()], start=1):
        is_late = any(part.path in late for part in parts) if parts else bool(late)
        yield Attempt(student, parts, number, person, None, is_late, tuple(notes))


def _by_version(files: Sequence[_File], course: Course) -> list[tuple[Part, ...]]:
    """The parts of each attempt: of each file the newest version that there was by then.

    Only a file that is there in several versions makes attempts; one version, even called `-1`, is
    the one that counts. Of the same version twice, the one with the later attachment is taken.
    """
    versions: dict[str, dict[int, _File]] = defaultdict(dict)
    for file in files:
        name, version = _versioned(file.file, {other.file for other in files}, course)
        versions[name][version] = file
    last = max((max(there) for there in versions.values()), default=0)
    several = {v for there in versions.values() if len(there) > 1 for v in there}
    attempts = []
    for level in [*sorted(several)[:-1], last]:
        parts = []
        for name, there in versions.items():
            if until := [version for version in there if version <= level]:
                parts.append(Part(there[max(until)].path, name))
        attempts.append(tuple(parts))
    return attempts


def _versioned(file: str, others: set[str], course: Course) -> tuple[str, int]:
    """A file's own name and its version: `scale-1.py` is version 1 of `scale.py`.

    But it may be called so: only of an exercise, of a zip and of a file that is there without a
    number too is the number one of Canvas's.
    """
    path = Path(file)
    if match := AGAIN.fullmatch(path.stem):
        name = match["stem"] + path.suffix
        is_exercise = match["stem"] in course.names and path.suffix in CODE
        if is_exercise or name in others or path.suffix.lower() == ".zip":
            return name, int(match["version"])
    return file, 0
