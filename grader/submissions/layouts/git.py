"""Clones of the students' repositories: `{slug}-submissions/{slug}-{login}/` or `{login}/`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.submissions.layouts import plain
from grader.submissions.layouts.commits import committed
from grader.submissions.layouts.attempt import Attempt, Found, Listing, student_names
from grader.report import Person
from grader.submissions.submission import shown

PARENT = "-submissions"


def recognises(listing: Listing) -> bool:
    """Whether most entries are clones."""
    return 2 * sum(_is_clone(path) for path in listing.entries) > len(listing.entries)


def read(listing: Listing, course: Course) -> Found:
    """As in a plain folder, but called by login, and with the time of the last commit."""
    attempts, left_out = plain.read(listing, course)
    prefix = _prefix(listing)
    paths = [attempt.parts[0].path for attempt in attempts]
    logins = [_login(path, prefix) for path in paths]
    names = student_names([(login, path.name) for login, path in zip(logins, paths)])
    return [_attempt(*of_one) for of_one in zip(attempts, names, logins, paths)], left_out


def _attempt(attempt: Attempt, name: str, login: str, path: Path) -> Attempt:
    submitted = committed(path) if _is_clone(path) else None
    return replace(attempt, student=name, person=Person(login=shown(login)), submitted=submitted)


def _is_clone(path: Path) -> bool:
    return path.is_dir() and (path / ".git").exists()


def _prefix(listing: Listing) -> str:
    """What comes before the logins: the folder says it, or every clone begins with it."""
    folder = listing.folder.absolute().name
    names = [path.name for path in listing.entries if _is_clone(path)]
    if folder.endswith(PARENT):
        return folder.removesuffix(PARENT) + "-"
    if len(names) < 2:
        return ""
    shared = 0
    for pieces in zip(*(name.split("-")[:-1] for name in names)):
        if len(set(pieces)) > 1:
            break
        shared += 1
    return "".join(f"{piece}-" for piece in names[0].split("-")[:shared])


def _login(path: Path, prefix: str) -> str:
    name = path.name if path.is_dir() else path.stem
    return name.removeprefix(prefix) or name
