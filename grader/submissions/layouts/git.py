"""Clones of the students' repositories: `{slug}-submissions/{slug}-{login}/` or `{login}/`.

A clone's configuration can name commands that git would run, so git never uses the clone's `.git`
folder. The commit that HEAD names is read here as text. Then git reads this commit in an empty
repository of our own, which shares nothing but the clone's objects.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from grader.course.course import Course
from grader.report import Person
from grader.sandbox.confinement.layers import Confinement, confine_program
from grader.scratch import scratch_folder
from grader.submissions.layouts import plain
from grader.submissions.layouts.attempt import Attempt, Listing, student_names
from grader.submissions.notes import printable_name
from grader.submissions.opening import Entry, NotOpened, OwnFolder, read_file

PARENT = "-submissions"
MAX_TEXT = 4 * 1024 * 1024  # bytes of a file in .git; a file of packed refs can be long
MAX_COMMIT = 64 * 1024  # bytes of a commit with its message
TIMEOUT = 10  # seconds for one git command
LIMITS = Confinement(memory_bytes=4 << 30, cpu_seconds=TIMEOUT, file_bytes=0)
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
COMMITTER = re.compile(rb"^committer .*> ([0-9]{1,12}) ([+-])([0-9]{2})([0-9]{2})$", re.MULTILINE)


def recognises(listing: Listing) -> bool:
    """Return whether most entries are clones."""
    return listing.mostly(_is_clone)


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Read a plain folder, but name students by login and add the time of the last commit."""
    attempts = plain.read(listing, course)
    prefix = _prefix(listing)
    paths = [attempt.parts[0].path for attempt in attempts]
    folders = {entry.path for entry in listing.entries if entry.is_folder}
    logins = [_login(path.name if path in folders else path.stem, prefix) for path in paths]
    names = student_names((login, path.name) for login, path in zip(logins, paths))
    people = [Person(login=printable_name(login)) for login in logins]
    return [
        replace(attempt, student=name, person=person, submitted=last_commit_time(path))
        for attempt, name, person, path in zip(attempts, names, people, paths)
    ]


def _is_clone(entry: Entry) -> bool:
    return entry.is_folder and os.path.lexists(entry.path / ".git")


def _prefix(listing: Listing) -> str:
    """Return the text before each login: from the folder's name, or shared by all clones."""
    folder = listing.folder.absolute().name
    if folder.endswith(PARENT):
        return folder.removesuffix(PARENT) + "-"
    clones = [entry for entry in listing.entries if _is_clone(entry)]
    pieces = zip(*(clone.name.split("-")[:-1] for clone in clones))
    shared = itertools.takewhile(lambda same: len(set(same)) == 1, pieces)
    return "".join(f"{same[0]}-" for same in shared) if len(clones) > 1 else ""


def _login(name: str, prefix: str) -> str:
    return name.removeprefix(prefix) or name


def last_commit_time(clone: Path) -> datetime | None:
    """Return the committer's time of the commit that is checked out; None if it is unknown."""
    git_folder = clone / ".git"
    try:
        OwnFolder(clone.parent).entries(git_folder / "objects")  # a folder of the clone's own
        commit = _head(git_folder)
        return _committer_time(_read_commit(git_folder, commit)) if commit else None
    except (NotOpened, OSError, subprocess.SubprocessError, ValueError, OverflowError):
        return None


def _head(git_folder: Path) -> str:
    head = _read_text(git_folder, "HEAD").strip()
    if not head.startswith("ref: "):
        return head if HASH.fullmatch(head) else ""
    ref = head.removeprefix("ref: ")
    if not REF.fullmatch(ref) or ".." in ref:
        return ""
    loose = _read_text(git_folder, ref).strip()
    if HASH.fullmatch(loose):
        return loose
    packed = (line.partition(" ") for line in _read_text(git_folder, "packed-refs").splitlines())
    return next((found for found, _, name in packed if name == ref and HASH.fullmatch(found)), "")


def _read_text(git_folder: Path, name: str) -> str:
    """Return a text in a clone's `.git`; empty if there is none that may be read."""
    try:
        data = read_file(git_folder / name, git_folder.parent.parent, MAX_TEXT)
    except (NotOpened, OSError):
        return ""
    return data.decode("ascii", "replace")


def _read_commit(git_folder: Path, commit: str) -> bytes:
    with scratch_folder("git") as home:
        objects = git_folder / "objects"
        _make_empty_repository(home, sha256=len(commit) == 64)
        size = _cat_file(home, objects, "-s", commit).strip()
        if not size.isdigit() or int(size) > MAX_COMMIT:
            return b""
        return _cat_file(home, objects, "commit", commit)


def _make_empty_repository(home: Path, sha256: bool) -> None:
    (home / "objects").mkdir()
    (home / "refs").mkdir()
    (home / "HEAD").write_text("ref: refs/heads/none\n")
    (home / "config").write_text(
        f"[core]\nrepositoryformatversion = {int(sha256)}\nbare = true\n"
        + ("[extensions]\nobjectformat = sha256\n" if sha256 else "")
    )


def _cat_file(home: Path, objects: Path, *arguments: str) -> bytes:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_DIR": str(home),
        "GIT_OBJECT_DIRECTORY": str(objects.absolute()),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    command, nothing = ["git", "cat-file", *arguments], subprocess.DEVNULL
    return subprocess.check_output(
        command,
        cwd=home,
        env=environment,
        stdin=nothing,
        stderr=nothing,
        timeout=TIMEOUT,
        # What the objects of a clone hold is a stranger's as well.
        preexec_fn=lambda: confine_program(LIMITS, (home, objects.absolute())),
    )


def _committer_time(commit: bytes) -> datetime | None:
    match = COMMITTER.search(commit.partition(b"\n\n")[0])
    if match is None:
        return None
    seconds, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == b"-" else 1)
    return datetime.fromtimestamp(int(seconds), timezone(offset))
