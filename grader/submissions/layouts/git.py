"""Clones of the students' repositories: `{slug}-submissions/{slug}-{login}/` or `{login}/`.

The time of a clone is that of its last commit. The files in its folder are graded, or those of the
last commit before a deadline.
"""

from __future__ import annotations

import heapq
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from grader.course.course import Course
from grader.course.stubs import is_untouched
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.archives import CODE, MAX_DEPTH, is_archive, without_suffix
from grader.submissions.code_files import MAX_NOTEBOOK_BYTES
from grader.submissions.folders import MAX_WRAPPING, exact_name, is_searched
from grader.submissions.layouts import plain
from grader.submissions.layouts.attempt import Attempt, AttemptPart, Listing, student_names
from grader.submissions.layouts.collection import MACHINE_ERRORS
from grader.submissions.layouts.commits import (
    MAX_BLOBS,
    UNREADABLE,
    Commits,
    blob_name,
    head_of,
    open_commits,
)
from grader.submissions.near_names import marked_copy_of, resembled
from grader.submissions.notes import MAX_NAMED, for_review, printable_name, shortened
from grader.submissions.opening import Entry, OwnFolder
from grader.submissions.reader.host import exercise_names
from grader.trees import NotOpened, read_file

PARENT = "-submissions"
MAX_FILES = 1000  # files examined of one commit or one folder
ROOM_FOR_NAMES = 1 << 20  # bytes that git prints around the files of a commit
FIX = "fix that, and run the same command again"
NO_TIME = "the commit that is checked out cannot be read, so nothing says when it was made"
DETACHED = "no branch is checked out (detached HEAD), so later commits may be missing"
NEVER = "there is no commit after the stub: the student never committed"
NOT_COMPARED = "its files cannot be compared with its commit"
EDITED = "edits are not committed"


def recognises(listing: Listing) -> bool:
    """Return whether most entries are clones."""
    return listing.mostly(_is_clone)


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Read a plain folder, but name students by login and add the time of the last commit."""
    attempts = plain.read(listing, course)
    prefix = _prefix(listing)
    logins = [_login(_name_of(attempt, listing), prefix) for attempt in attempts]
    names = student_names((login, attempt.student) for login, attempt in zip(logins, attempts))
    people = [Person(login=printable_name(login)) for login in logins]
    return [
        replace(_with_commit(attempt, course), student=name, person=person)
        for attempt, name, person in zip(attempts, names, people)
    ]


def _name_of(attempt: Attempt, listing: Listing) -> str:
    """Return the name of an attempt's folder, or of its file without the suffix."""
    if not attempt.parts:
        return attempt.student
    path = attempt.parts[0].path
    is_folder = any(entry.path == path and entry.is_folder for entry in listing.entries)
    return path.name if is_folder else without_suffix(path.name)


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


def _with_commit(attempt: Attempt, course: Course) -> Attempt:
    """Return an attempt with the time of its commit, and with flags on anything odd."""
    if not attempt.parts:
        return attempt
    clone = attempt.parts[0].path
    if not os.path.lexists(clone / ".git"):
        return replace(attempt, notes=(*attempt.notes, for_review("it is no git clone")))
    head, submitted = head_of(clone), None
    flags = [DETACHED] if head.is_detached else []
    try:
        with open_commits(clone, head.commit) as commits:
            submitted = commits.time(head.commit) if head.commit else None
            flags += _oddities(clone, commits, course) if submitted else []
    except UNREADABLE:
        flags += [NOT_COMPARED] if submitted else []
    flags += [] if submitted else [NO_TIME]
    notes = (*attempt.notes, *map(for_review, dict.fromkeys(flags)))
    return replace(attempt, submitted=submitted, notes=notes)


def _oddities(clone: Path, commits: Commits, course: Course) -> Iterator[str]:
    """Yield the oddities of a clone's files, compared with those of its commit."""
    files = {path: blob for path, blob in commits.files(commits.head).items() if _is_code(path)}
    there = _code_in(clone, commits.head)
    if edited := sorted(_edited(there, files, course)):
        yield f"{EDITED}: {', '.join(shortened(list(map(printable_name, edited)), MAX_NAMED))}"
    known = {blob: one.data for one in there.values() for blob in one.blobs}
    near = {path: files[path] for path in _nearest(files)}
    wanted = [blob for blob in near.values() if blob not in known]
    contents = {**known, **(commits.read(wanted) if wanted else {})}
    # A file may be in a thousand places.
    different = {
        (_exercise_of(path, course), _is_python(path), blob) for path, blob in near.items()
    }
    if not any(
        _has_work(name, is_python, contents.get(blob, b""), course)
        for name, is_python, blob in different
    ):
        yield NEVER


def _nearest(paths: Iterable[str]) -> list[str]:
    """Return the paths to examine: those with the fewest folders on the way."""
    return heapq.nsmallest(MAX_FILES, paths, key=lambda path: path.count("/"))


def _is_code(path: str) -> bool:
    """Return whether a file of a commit is code where exercises are looked for."""
    parts = PurePosixPath(path).parts
    is_near = 0 < len(parts) <= MAX_WRAPPING + 1
    return is_near and path.lower().endswith(CODE) and all(map(is_searched, parts))


@dataclass(frozen=True)
class _WorkingFile:
    """A file in a clone's folder: its name in git, with either line ends, and its bytes."""

    blobs: tuple[str, ...]
    data: bytes


def _code_in(clone: Path, head: str) -> dict[str, _WorkingFile]:
    """Return the code files in a clone's folder by path, as far as they can be read."""
    own, found = OwnFolder(clone.parent), dict[str, _WorkingFile]()
    level, room = [clone], MAX_BLOBS
    for _ in range(MAX_WRAPPING + 1):
        entries = [entry for folder in level for entry in own.entries(folder)]
        for entry in entries:
            path = entry.path.relative_to(clone).as_posix()
            if entry.kind == "file" and _is_code(path) and len(found) < MAX_FILES and room > 0:
                try:
                    data = read_file(entry.path, clone.parent, MAX_NOTEBOOK_BYTES)
                except (NotOpened, OSError):
                    continue
                room -= len(data)
                # Git may write other line endings than those of the commit, if it is configured
                # to.
                both = data, data.replace(b"\r\n", b"\n")
                found[path] = _WorkingFile(tuple(blob_name(one, head) for one in both), data)
        level = [one.path for one in entries if one.is_folder and is_searched(one.name)]
    return found


def _edited(
    there: Mapping[str, _WorkingFile], files: Mapping[str, str], course: Course
) -> Iterator[str]:
    """Yield the files that differ from the commit: changed, new or missing ones."""
    for path, one in there.items():
        if path in files:
            if files[path] not in one.blobs:
                yield path
        elif _exercise_of(path, course):
            yield path
    yield from (path for path in files if path not in there and _own_name(path, course))


def _own_name(path: str, course: Course) -> str:
    return exact_name(PurePosixPath(path), course.names)


def _exercise_of(path: str, course: Course) -> str:
    """Return the exercise for which a file is meant by its name, or nothing."""
    stem = PurePosixPath(path).stem
    return (
        _own_name(path, course)
        or marked_copy_of(stem, course.names)
        or resembled(stem, course.names)
    )


def _is_python(path: str) -> bool:
    return path.lower().endswith(".py")


def _has_work(name: str, is_python: bool, data: bytes, course: Course) -> bool:
    """Return whether a file of a commit is work of the student: for an exercise, and not a stub.

    `name` is the exercise for which it is meant by its own name, or nothing.
    """
    known = exercise_names(course)
    if name and is_python:
        stub = next(each.stub for each in known if each.name == name)
        return not is_untouched(data.decode("utf-8-sig", "replace"), stub)
    if name and data.strip():
        return True
    return plain.defines_of_course(data, course)


def before_due(attempt: Attempt, due: datetime, into: Path) -> Attempt:
    """Return the attempt as committed at its deadline, with its files in a new folder `into`.

    Without a commit before the deadline it has no files. Raises `RequestError` without git.
    """
    if shutil.which("git") is None:
        raise RequestError("--before-due needs git, which is not installed", "install git")
    until = f"{due:%Y-%m-%d %H:%M %Z}".rstrip()
    clone = attempt.parts[0].path if attempt.parts else into
    try:
        head = head_of(clone)
        with open_commits(clone, head.commit) as commits:
            commit = commits.last_before(due) if head.commit else ""
            if not commit:
                return _without_files(attempt, f"there is no commit before {until}")
            left = _write_files(commits, commit, into)
            submitted = commits.time(commit)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise RequestError(
                f"cannot write the files of a commit: {error.strerror}", FIX
            ) from None
        return _without_files(attempt, "its commits cannot be read")
    is_last = commit == head.commit
    more = "" if is_last else "; later commits were left out"
    note = f"the last commit before {until} was used ({commit[:10]}){more}"
    part = AttemptPart(into, attempt.parts[0].name)
    return replace(
        attempt,
        parts=(part,),
        root=into.parent,
        submitted=submitted,
        notes=(*attempt.notes, note, *map(for_review, filter(None, [left]))),
    )


def _without_files(attempt: Attempt, why: str) -> Attempt:
    return replace(attempt, parts=(), submitted=None, notes=(*attempt.notes, for_review(why)))


def _write_files(commits: Commits, commit: str, into: Path) -> str:
    """Write the code and archives of a commit below a new folder; return a flag on the rest."""
    files = {path: blob for path, blob in commits.files(commit).items() if _is_wanted(path)}
    near = {path: files[path] for path in _nearest(files)}
    sizes, room = commits.sizes(list(near.values())) if near else {}, MAX_BLOBS - ROOM_FOR_NAMES
    kept = {}
    for path, blob in near.items():
        if (size := sizes.get(blob, 0)) <= room:
            kept[path] = blob
            room -= size
    contents = commits.read(list(kept.values())) if kept else {}
    into.mkdir()
    for path, blob in kept.items():
        if blob in contents:
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes(contents[blob])
    left = len(files) - len(kept)
    return f"{left} files of that commit were left out, because it is too large" if left else ""


def _is_wanted(path: str) -> bool:
    """Return whether a file of a commit can be part of a submission; git allows any names."""
    parts = path.split("/")
    is_inside = all(part not in ("", ".", "..") for part in parts) and len(parts) <= MAX_DEPTH
    is_wanted = path.lower().endswith(CODE) or is_archive(path)
    return is_inside and is_wanted and all(map(is_searched, parts[:-1]))
