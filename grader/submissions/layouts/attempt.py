"""Attempts: what one student handed in at one time, and what every layout needs to find them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from grader.report import Person
from grader.submissions.archives import ARCHIVES, is_code_or_zip
from grader.submissions.notes import printable_name

UNKNOWN = Person()
MAX_NAME = 120  # bytes; a longer name is cut
CLUTTER = ("__MACOSX", "Thumbs.db", "desktop.ini")  # files that operating systems add
TEXT_ENTRY = "a text entry was handed in, but text entries are not graded; hand in the files"
LINK_ENTRY = "a link was handed in, but links are not followed; hand in the files"


@dataclass(frozen=True)
class AttemptPart:
    """A file or folder, and the name that its student gave it."""

    path: Path
    name: str


@dataclass(frozen=True)
class Attempt:
    """One attempt of a student.

    `student` is unique in the class and usable as a file name. `number` counts the student's
    attempts from 1, the oldest. `submitted` has a time zone. `late` is True only if the platform
    says so. `notes` are shown in the student's report.
    """

    student: str
    parts: tuple[AttemptPart, ...]
    number: int = 1
    person: Person = UNKNOWN
    submitted: datetime | None = None
    late: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """A file that belongs to no attempt; `why` continues its sentence, such as "is a link"."""

    what: str
    why: str


@dataclass(frozen=True)
class FoundAttempts:
    """The attempts of a class, sorted by student and number, and the files that were left out."""

    layout: str
    attempts: tuple[Attempt, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Listing:
    """The files and folders in a folder of submissions, by name, and those that are left out."""

    folder: Path
    entries: list[Path] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, name: str, why: str) -> None:
        """Add a file or folder to those that belong to no attempt."""
        self.left_out.append(LeftOut(printable_name(name), why))

    def mostly(self, matches: Callable[[Path], bool]) -> bool:
        """Return whether more than half of the entries match."""
        return 2 * sum(map(matches, self.entries)) > len(self.entries)


def list_folder(folder: Path, without: Path | None = None) -> Listing:
    """Return the entries of `folder`, except hidden files and the folder `without`."""
    listing = Listing(folder)
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name in CLUTTER:
            continue
        if without is not None and path.absolute() == without.absolute():
            continue
        if path.is_symlink():
            listing.leave_out(path.name, "is a link")
        elif not path.is_dir() and not path.is_file():
            listing.leave_out(path.name, "is not a regular file")
        else:
            listing.entries.append(path)
    return listing


def unsupported_note(name: str) -> str:
    """Return a note if a file with this name cannot be part of an attempt; empty if it can."""
    if is_code_or_zip(Path(name)):
        return ""
    if Path(name).suffix.lower() in ARCHIVES:
        why = "is an archive that is not opened here (zip the files instead)"
    else:
        why = "is neither Python, a notebook nor a zip"
    return f"{printable_name(name)} {why}"


def student_names(claims: Iterable[tuple[str, str]]) -> list[str]:
    """Return a unique name for each student, in the order of the claims.

    A claim is the name that a student should have, and a text that only this student has. The
    first who claims a name that can be a file name gets it. Any other gets a name that ends in a
    hash of the unique text, so that no two names become equal when they are cleaned or cut.
    """
    numbered = list(enumerate(claims))
    first = {name: number for number, (name, _) in reversed(numbered) if _can_be_file_name(name)}
    names = {number: name for name, number in first.items()}
    for number, (wanted, unique) in numbered:
        if number not in names:
            names[number] = _hashed_name(wanted, unique, names.values())
    return [names[number] for number, _ in numbered]


def _can_be_file_name(name: str) -> bool:
    is_visible = bool(name.strip()) and not name.startswith(".") and "/" not in name
    is_short = len(os.fsencode(name)) <= MAX_NAME
    return is_visible and is_short and name.isprintable() and printable_name(name) == name


def _hashed_name(wanted: str, unique: str, taken: Iterable[str]) -> str:
    digest = hashlib.sha256(os.fsencode(unique)).hexdigest()
    cleaned = printable_name(wanted).replace("/", "_")
    short = os.fsencode(cleaned)[:MAX_NAME].decode("utf-8", "ignore").strip(". ")
    names = [f"{short or 'submission'}-{digest[:length]}" for length in (8, 16, 64)]
    return next((name for name in names if name not in taken), names[-1])
