"""What was handed in: attempts of students, and what was left out. The words of every layout."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.report import Person
from grader.submissions.submission import CODE, shown

NOBODY = Person()  # of whom nothing is known
MAX_NAME = 120  # bytes; what is longer is cut
CLUTTER = ("__MACOSX", "Thumbs.db", "desktop.ini")
ARCHIVES = (".tar", ".gz", ".tgz", ".7z", ".rar", ".xz", ".bz2")
TEXT_ENTRY = "a text entry was handed in, which is not graded; hand in the exercise files"
LINK_ENTRY = "a link was handed in, which is not followed; hand in the exercise files"


@dataclass(frozen=True)
class Part:
    """A file or folder, and what its student called it."""

    path: Path
    name: str


@dataclass(frozen=True)
class Attempt:
    """What one student handed in at one time.

    `student` is unique in the class and can be a file's name; `number` counts a student's attempts
    from 1, the oldest. `submitted` knows its zone, and `late` is only what the platform itself
    says. `notes` are for the student's report.
    """

    student: str
    parts: tuple[Part, ...]
    number: int = 1
    person: Person = NOBODY
    submitted: datetime | None = None
    late: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """What is nobody's submission; `why` goes on with the sentence: "is a link"."""

    what: str
    why: str


@dataclass(frozen=True)
class HandedIn:
    """A class's attempts, sorted by student and number, and what was left out."""

    layout: str
    attempts: tuple[Attempt, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Listing:
    """A folder of submissions: its entries by name, links and the like being left out already."""

    folder: Path
    entries: tuple[Path, ...]
    left_out: tuple[LeftOut, ...] = ()


Found = tuple[list[Attempt], list[LeftOut]]  # what a layout makes of a listing


def listing(folder: Path, without: Path | None = None) -> Listing:
    """What lies in `folder`, without hidden files, and without the folder `without`."""
    entries, left_out = [], []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name in CLUTTER:
            continue
        if without is not None and path.absolute() == without.absolute():
            continue
        if path.is_symlink():
            left_out.append(LeftOut(shown(path.name), "is a link"))
        elif not path.is_dir() and not path.is_file():
            left_out.append(LeftOut(shown(path.name), "is no regular file"))
        else:
            entries.append(path)
    return Listing(folder, tuple(entries), tuple(left_out))


def unfit(name: str) -> str:
    """Why a file called `name` can be no part of a submission, or nothing."""
    suffix = Path(name).suffix.lower()
    if suffix in (*CODE, ".zip"):
        return ""
    if suffix in ARCHIVES:
        return "is an archive that is not opened here (zip the files instead)"
    return "is neither Python, a notebook nor a zip"


def student_names(claims: Sequence[tuple[str, str]]) -> list[str]:
    """What each student is called: of each claim, the wanted name and all that tells it apart.

    A name that can be a file's is its own, for the first who wants it; any other gets a mark made
    from what tells it apart, so that nobody is given a neighbour's name by cleaning or cutting.
    """
    names: dict[int, str] = {}
    for number, (wanted, _) in enumerate(claims):
        if _is_plain(wanted) and wanted not in names.values():
            names[number] = wanted
    for number, (wanted, whole) in enumerate(claims):
        if number not in names:
            names[number] = _marked(wanted, whole, names.values())
    return [names[number] for number in range(len(claims))]


def _is_plain(name: str) -> bool:
    """Whether a name is printable, short enough and nothing that cleaning would change."""
    can_be_a_file = bool(name.strip()) and not name.startswith(".") and "/" not in name
    short = len(os.fsencode(name)) <= MAX_NAME
    return can_be_a_file and short and name.isprintable() and shown(name) == name


def _marked(wanted: str, whole: str, taken: Iterable[str]) -> str:
    mark = hashlib.sha256(os.fsencode(whole)).hexdigest()
    cleaned = shown(wanted).replace("/", "_")
    short = os.fsencode(cleaned)[:MAX_NAME].decode("utf-8", "ignore").strip(". ")
    names = [f"{short or 'submission'}-{mark[:length]}" for length in (8, 16, 64)]
    return next((name for name in names if name not in taken), names[-1])
