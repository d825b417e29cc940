"""Canvas, "Download Submissions": one flat folder of files named after student and attachment.

A file is called `{name}[_LATE]_{user}_{attachment}_{file}` or, if the class is graded anonymously,
`[LATE_]anon_{id}_{attachment}_{file}`. The name is the sortable one in lower case, with word
characters only. Text entries and links have no attachment: `…_{user}_text.html`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.report import Person
from grader.submissions.archives import is_code_or_opened, is_opened
from grader.submissions.layouts.attempt import (
    LINK_ENTRY,
    TEXT_ENTRY,
    Attempt,
    AttemptPart,
    Listing,
    student_names,
    unsupported_note,
)
from grader.submissions.notes import printable_name
from grader.submissions.opening import Entry, code_suffix

CONTENT = r"_(?:(?P<attachment>[0-9]+)_(?P<file>.+)|(?P<entry>text|link)\.html)"
NAMED = re.compile(rf"(?P<name>.*?)(?P<late>_LATE)?_(?P<user>[0-9]+){CONTENT}", re.DOTALL)
ANONYMOUS = re.compile(rf"(?P<late>LATE_)?(?P<user>anon_[0-9A-Za-z]{{5}}){CONTENT}", re.DOTALL)
VERSIONED = re.compile(r"(?P<stem>.+)-(?P<version>[1-9][0-9]{0,3})", re.DOTALL)
ENTRIES = {"text": TEXT_ENTRY, "link": LINK_ENTRY}


@dataclass(frozen=True)
class _CanvasFile:
    """One file of the download, as its name describes it; a field is empty if it is not there."""

    path: Path
    user: str
    late: str
    attachment: str  # a number
    file: str
    entry: str  # "text" or "link" for such an entry, which has no attachment
    name: str = ""


def recognises(listing: Listing) -> bool:
    """Return whether most entries have a name as Canvas writes it."""
    return listing.mostly(lambda entry: _parse(entry) is not None)


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return the attempts of every student; later versions of a file are later attempts."""
    students: dict[str, list[_CanvasFile]] = defaultdict(list)
    for entry in listing.entries:
        if file := _parse(entry):
            students[file.user].append(file)
            if file.entry:
                listing.leave_out(entry.name, f"is a {file.entry} entry")
        else:
            listing.leave_out(entry.name, "is not named as Canvas names files")
    names = student_names((user, user) for user in students)
    return [
        attempt
        for student, files in zip(names, students.values())
        for attempt in _attempts(student, files, course)
    ]


def _parse(entry: Entry) -> _CanvasFile | None:
    if entry.is_folder or "_" not in entry.name:  # excludes most other files without a search
        return None
    match = ANONYMOUS.fullmatch(entry.name) or NAMED.fullmatch(entry.name)
    if match is None:
        return None
    file = _CanvasFile(entry.path, **match.groupdict(""))
    return file if all(map(_is_word, file.name)) else None


def _is_word(letter: str) -> bool:
    """Return whether a name can hold this character; vowel signs and accents count as letters."""
    return letter.isalnum() or letter == "_" or unicodedata.category(letter).startswith("M")


def _attempts(student: str, files: Sequence[_CanvasFile], course: Course) -> Iterator[Attempt]:
    person = Person(name=printable_name(files[0].name))
    late = {file.path for file in files if file.late}
    attached = [file for file in files if file.file]
    attached.sort(key=lambda file: int(file.attachment[:40]))
    notes = [ENTRIES[file.entry] for file in files if file.entry]
    notes += filter(None, (unsupported_note(_unnumbered(file.file)) for file in attached))
    usable = [file for file in attached if is_code_or_opened(_unnumbered(file.file))]
    for number, parts in enumerate(_by_version(usable, course), start=1):
        is_late = any(part.path in late for part in parts) if parts else bool(late)
        yield Attempt(student, parts, number, person, None, is_late, tuple(notes))


def _by_version(files: Sequence[_CanvasFile], course: Course) -> list[tuple[AttemptPart, ...]]:
    """Return the parts of each attempt: every file in its newest version at that time.

    Only a file with several versions makes more than one attempt. A file with one version, even
    one called `-1`, belongs to the last attempt. If a version is there twice, the one with the
    later attachment is used.
    """
    versions: dict[str, dict[int, _CanvasFile]] = defaultdict(dict)
    names = {file.file for file in files}
    for file in files:
        name, version = _name_and_version(file.file, names, course)
        versions[name][version] = file
    last = max((max(there) for there in versions.values()), default=0)
    repeated = {v for there in versions.values() if len(there) > 1 for v in there}
    return [
        tuple(
            AttemptPart(there[max(v for v in there if v <= level)].path, name)
            for name, there in versions.items()
            if min(there) <= level
        )
        for level in [*sorted(repeated)[:-1], last]
    ]


def _unnumbered(file: str) -> str:
    """Return the name without Canvas's number in the middle: `hw.tar-1.gz` is `hw.tar.gz`."""
    path = Path(file)
    match = VERSIONED.fullmatch(path.stem)
    name = match["stem"] + path.suffix if match else file
    return name if _is_numbered(name, file) else file


def _is_numbered(name: str, file: str) -> bool:
    """Return whether a file would be code or an archive without a number that Canvas has added."""
    return is_opened(name) or (is_code_or_opened(name) and not is_code_or_opened(file))


def _name_and_version(file: str, names: set[str], course: Course) -> tuple[str, int]:
    """Return a file's own name and its version: `scale-1.py` is version 1 of `scale.py`.

    A student may also have chosen such a name. The number counts as Canvas's own only for an
    exercise, for a zip, or if the file is also there without a number.
    """
    path = Path(file)
    if match := VERSIONED.fullmatch(path.stem):
        name = match["stem"] + path.suffix
        is_exercise = match["stem"] in course.names and code_suffix(path.suffix)
        if is_exercise or name in names or _is_numbered(name, file):
            return name, int(match["version"])
    return file, 0
