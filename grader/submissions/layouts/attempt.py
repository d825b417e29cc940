"""Attempts: the files that one student handed in at one time, and tools to find them."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from grader.errors import RequestError
from grader.report import Person
from grader.submissions.archives import is_archive, is_code_or_opened, unopened_reason
from grader.submissions.notes import MAX_NOTES, for_review, printable_name, quoted
from grader.submissions.opening import Entry, OwnFolder, is_clutter
from grader.trees import IS_A_LINK, NOT_REGULAR, NotOpened

UNKNOWN = Person()
MAX_CLASS_ENTRIES = 1_000_000  # files and folders at the top of a class's folder
MAX_NAME = 120  # bytes; a longer name is cut
REFUSED_KINDS = {"link": IS_A_LINK, "other": NOT_REGULAR}
# Names that the results of a class use: a student's pages have the student's name, and those of an
# earlier attempt end in its number.
RESERVED = re.compile(
    r".*\.attempt-[0-9]+|(?:class|dashboard|grades|index|ledger|reports|results)(?:\.[a-z]+)?",
    re.DOTALL | re.IGNORECASE,
)
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
    says so. `notes` are shown in the student's report. `root` is the folder of the class. With a
    `commit`, the only part is a git clone, and the files of that commit count.
    """

    student: str
    parts: tuple[AttemptPart, ...]
    number: int = 1
    person: Person = UNKNOWN
    submitted: datetime | None = None
    late: bool = False
    notes: tuple[str, ...] = ()
    root: Path | None = None
    commit: str = ""


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
    entries: list[Entry] = field(default_factory=list)
    _left_out: dict[str, list[str]] = field(default_factory=dict)  # the first names, by reason
    _counts: Counter[str] = field(default_factory=Counter)  # how many in all, by reason

    def leave_out(self, name: str, why: str) -> None:
        """Add a file or folder to those that belong to no attempt."""
        self._counts[why] += 1
        if self._counts[why] <= MAX_NOTES:
            self._left_out.setdefault(why, []).append(name)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The files that were left out: for each reason the first few, and the number of others."""
        return tuple(
            one
            for why, names in self._left_out.items()
            for one in _all_left_out(names, self._counts[why], why)
        )

    def mostly(self, matches: Callable[[Entry], bool]) -> bool:
        """Return whether more than half of the entries match; look no further than needed."""
        others = (entry for entry in self.entries if not matches(entry))
        too_many = islice(others, max(0, len(self.entries) - 1) // 2, None)
        return bool(self.entries) and next(too_many, None) is None


def _all_left_out(first: Sequence[str], count: int, why: str) -> Iterator[LeftOut]:
    for name in first:
        yield LeftOut(printable_name(name), why)
    if count > len(first):
        yield LeftOut(f"each of {count - len(first)} more", why)


def list_folder(folder: Path, without: Path | None = None) -> Listing:
    """Return the entries of `folder`, except what systems add and the folder `without`.

    Raises `RequestError` if the folder cannot be read.
    """
    listing = Listing(folder)
    try:
        entries = OwnFolder(folder, MAX_CLASS_ENTRIES).entries(folder)
    except (OSError, NotOpened) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"{folder} cannot be read: {reason}", f"ls -ld {folder}") from None
    results = without.absolute() if without is not None else None
    for entry in entries:
        if is_clutter(entry.name):
            continue
        if results and entry.name == results.name and entry.path.absolute() == results:
            continue
        if entry.name.startswith("."):
            listing.leave_out(entry.name, "begins with a dot")
        elif reason := REFUSED_KINDS.get(entry.kind):
            listing.leave_out(entry.name, reason)
        else:
            listing.entries.append(entry)
    return listing


def unsupported_note(name: str) -> str:
    """Return a note if a file with this name cannot be part of an attempt; empty if it can."""
    if is_code_or_opened(name):
        return ""
    if is_archive(name):
        return for_review(f"{quoted(name)} {unopened_reason(name)}")
    return f"{quoted(name)} is neither Python, a notebook nor a zip"


def student_names(claims: Iterable[tuple[str, str]]) -> list[str]:
    """Return a unique name for each student, in the order of the claims.

    A claim is the name that a student should have, and a text that only this student has. The
    first claim to a name that can be a file name gets it. Any other claim gets a name that ends in
    a hash of the unique text, so that no two names become equal when they are cleaned or cut. The
    same holds for names that the results of the class use.
    """
    numbered = list(enumerate(claims))
    first = {name: number for number, (name, _) in reversed(numbered) if _can_be_file_name(name)}
    names = {number: name for name, number in first.items()}
    taken = set(first)
    for number, (wanted, unique) in numbered:
        if number not in names:
            names[number] = _hashed_name(wanted, unique, taken)
            taken.add(names[number])
    return [names[number] for number, _ in numbered]


def _can_be_file_name(name: str) -> bool:
    is_visible = bool(name.strip()) and not name.startswith(".") and "/" not in name
    is_short = len(os.fsencode(name)) <= MAX_NAME
    is_text = name.isprintable() and printable_name(name) == name
    return is_visible and is_short and is_text and not RESERVED.fullmatch(name)


def _hashed_name(wanted: str, unique: str, taken: Set[str]) -> str:
    digest = hashlib.sha256(os.fsencode(unique)).hexdigest()
    cleaned = printable_name(wanted).replace("/", "_")
    short = os.fsencode(cleaned)[:MAX_NAME].decode("utf-8", "ignore").strip(". ")
    short = short or "submission"
    names = (f"{short}-{digest[:length]}" for length in (8, 16, 64))
    numbered = (f"{short}-{digest[:8]}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(names, numbered) if name not in taken)
