"""Clones of the students' repositories: `{slug}-submissions/{slug}-{login}/` or `{login}/`.

The time of a clone is that of the last commit which changed work for the course: a later one is for
something else. The files in its folder are graded, or those of the last commit before a deadline.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from grader.course.course import Course
from grader.course.stubs import is_untouched
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.archives import without_suffix
from grader.submissions.code_files import LFS, MAX_NOTEBOOK_BYTES
from grader.submissions.folders import MAX_WRAPPING, exact_name, is_searched
from grader.submissions.layouts import plain
from grader.submissions.layouts.attempt import Attempt, Listing, student_names
from grader.submissions.layouts.commits import (
    MAX_BLOBS,
    MAX_FILES,
    UNREADABLE,
    Commits,
    CommitTree,
    blob_name,
    branches_of,
    head_of,
    nearest,
    open_commits,
)
from grader.submissions.near_names import marked_copy_of, resembled
from grader.submissions.notes import MAX_NAMED, for_review, listed, printable_name, quoted
from grader.submissions.opening import Entry, OwnFolder, code_stem, code_suffix
from grader.submissions.reader.host import exercise_names
from grader.trees import NotOpened, read_file

PARENT = "-submissions"
MAX_OTHERS = 3  # branches that are compared with the one that is checked out
NO_TIME = "the commit that is checked out cannot be read, so nothing says when it was made"
DETACHED = "no branch is checked out (detached HEAD), so later commits may be missing"
NEVER = "there is no commit after the stub: the student never committed"
NOT_COMPARED = "its files cannot be compared with its commit"
EDITED = "edits are not committed"
SUBMODULE = "is a git submodule without files here; run `git submodule update --init` in the clone"


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
    head = head_of(clone)
    found = _Found(head.commit)
    flags = [DETACHED] if head.is_detached else []
    try:
        with open_commits(clone, head.commit) as commits:
            found.submitted = commits.time(head.commit) if head.commit else None
            flags += _oddities(clone, commits, course, found) if found.submitted else []
    except UNREADABLE:
        flags += [NOT_COMPARED] if found.submitted else []
    flags += [] if found.submitted else [NO_TIME]
    notes = (*attempt.notes, *map(for_review, dict.fromkeys(flags)))
    other = found.commit if found.commit != head.commit else ""
    return replace(attempt, submitted=found.submitted, notes=notes, commit=other)


@dataclass
class _Found:
    """The commit that is graded, and its time."""

    commit: str
    submitted: datetime | None = None


def _oddities(clone: Path, commits: Commits, course: Course, found: _Found) -> Iterator[str]:
    """Yield what is odd about a clone, compared with its commits.

    If only another branch has work, its last commit is the one that is `found`.
    """
    tree, there = commits.tree(commits.head), _code_in(clone, commits.head)
    files = _code_of(tree)
    if edited := sorted(_edited(there, files, course)):
        yield f"{EDITED}: {listed(edited)}"
    for path in tree.submodules[:MAX_NAMED]:
        if not any((clone / path).glob("*")):
            yield f"{quoted(path)} {SUBMODULE}"
    known = {blob: one.data for one in there.values() for blob in one.blobs}
    own = work = _work(files, commits, course, known)
    others = list(_other_branches(clone, commits, course, own))
    if len(others) == 1 and not own:
        ((found.commit, branch),) = others
        files = _code_of(commits.tree(found.commit))
        work = _work(files, commits, course, {})
        yield f"the branch that is checked out has no work, so {quoted(branch)} was used"
    elif others:
        yield f"there is other work on {listed(branch for _, branch in others)}, which was not used"
    elif not own:
        yield NEVER
    if paths := _with_work(files, work, course):
        found.submitted = commits.time(commits.last_change(found.commit, paths))
    if commit := commits.backdated(found.commit):
        yield f"commit {quoted(commit[:10])} is dated before its parent"


def _with_work(files: Mapping[str, str], work: Mapping[str, Set[str]], course: Course) -> list[str]:
    """Return the files beside a student's work, which may import them.

    Files for exercises of other lists are left out: students go on with these in the same clone.
    """
    blobs = set[str]().union(*work.values())
    folders = {PurePosixPath(path).parent for path, blob in files.items() if blob in blobs}
    others = {name for one in course.lists.values() for name in one.exercises} - {*course.names}
    return [
        path
        for path in files
        if PurePosixPath(path).parent in folders
        and code_stem(PurePosixPath(path).name) not in others
    ]


def _code_of(tree: CommitTree) -> dict[str, str]:
    """Return the code files of a commit, with git's names of their bytes."""
    return {path: blob for path, blob in tree.files.items() if _is_code(path)}


def _other_branches(
    clone: Path, commits: Commits, course: Course, own: Mapping[str, Set[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the last commit and name of each branch with work that the commit's `own` lacks.

    That is work for another exercise, or later work.
    """
    names = branches_of(clone)
    names.pop(commits.head, None)
    last = commits.independent([commits.head, *names]) if names else []
    is_behind = commits.head not in last
    for commit in [each for each in last if each in names][:MAX_OTHERS]:
        files = _code_of(commits.tree(commit))
        for name, blobs in _work(files, commits, course, {}).items():
            if name not in own or (is_behind and blobs - own[name]):
                yield commit, names[commit]
                break


def _work(
    files: Mapping[str, str], commits: Commits, course: Course, known: Mapping[str, bytes]
) -> dict[str, set[str]]:
    """Return the files of a commit with work in them, by the exercises that the work is for."""
    near = {path: files[path] for path in nearest(files)}
    wanted = [blob for blob in near.values() if blob not in known]
    contents = {**known, **(commits.read(wanted) if wanted else {})}
    found = defaultdict[str, set[str]](set)
    # A file may lie in a thousand places.
    different = {
        (_exercise_of(path, course), _is_python(path), blob) for path, blob in near.items()
    }
    for name, is_python, blob in different:
        for exercise in _has_work_for(name, is_python, contents.get(blob, b""), course):
            found[exercise].add(blob)
    return found


def _is_code(path: str) -> bool:
    """Return whether a file of a commit is code where exercises are looked for."""
    parts = PurePosixPath(path).parts
    is_near = 0 < len(parts) <= MAX_WRAPPING + 1
    return is_near and code_suffix(path) != "" and all(map(is_searched, parts))


@dataclass(frozen=True)
class _WorkingFile:
    """A file in a clone's folder: the names that git may have for it, and its bytes."""

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
                # Git may have been told to write other line ends than those of the commit, and
                # Git LFS commits a pointer.
                forms = data, data.replace(b"\r\n", b"\n"), _pointer(data)
                found[path] = _WorkingFile(tuple(blob_name(one, head) for one in forms), data)
        level = [one.path for one in entries if one.is_folder and is_searched(one.name)]
    return found


def _pointer(data: bytes) -> bytes:
    digest = hashlib.sha256(data).hexdigest()
    return LFS + b"oid sha256:%s\nsize %d\n" % (digest.encode(), len(data))


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
    """Return the exercise that a file is meant for by its name, or nothing."""
    stem = code_stem(PurePosixPath(path).name)
    return (
        _own_name(path, course)
        or marked_copy_of(stem, course.names)
        or resembled(stem, course.names)
    )


def _is_python(path: str) -> bool:
    return code_suffix(path) == ".py"


def _has_work_for(name: str, is_python: bool, data: bytes, course: Course) -> Sequence[str]:
    """Return the exercises for which a file of a commit has work of the student, and no stub.

    `name` is the exercise for which it is meant by its own name, or nothing.
    """
    if name and is_python:
        stub = next(each.stub for each in exercise_names(course) if each.name == name)
        return [] if is_untouched(data.decode("utf-8-sig", "replace"), stub) else [name]
    if name and data.strip():
        return [name]
    return plain.defined_of_course(data, course)


def before_due(attempt: Attempt, due: datetime) -> Attempt:
    """Return the attempt as committed at its deadline.

    Without a commit before the deadline it has no files. Raises `RequestError` without git.
    """
    if shutil.which("git") is None:
        raise RequestError("--before-due needs git, which is not installed", "install git")
    until = f"{due:%Y-%m-%d %H:%M %Z}".rstrip()
    if not attempt.parts:
        return attempt
    clone = attempt.parts[0].path
    last = attempt.commit or head_of(clone).commit
    try:
        with open_commits(clone, last) as commits:
            commit = commits.last_before(due) if last else ""
            if not commit:
                return _without_files(attempt, _none_before(until, commits.is_shallow))
            submitted = commits.time(commit)
    except UNREADABLE:
        return _without_files(attempt, "its commits cannot be read")
    more = "" if commit == last else "; later commits were left out"
    note = f"the last commit before {until} was used ({commit[:10]}){more}"
    return replace(attempt, commit=commit, submitted=submitted, notes=(*attempt.notes, note))


def _none_before(until: str, is_shallow: bool) -> str:
    if is_shallow:
        fix = "run `git fetch --unshallow` in it"
        return f"the clone is shallow and holds no commit before {until}; {fix}"
    return f"there is no commit before {until}"


def _without_files(attempt: Attempt, why: str) -> Attempt:
    return replace(attempt, parts=(), submitted=None, notes=(*attempt.notes, for_review(why)))
