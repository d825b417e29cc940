"""Decides which courses' code runs in the grader's own processes, without confinement.

These are the installed course; a course that the user named; a folder whose course equals the
installed one, a copy that a command wrote for this user, or a course that this user accepted with
`grader trust`; and the user's own teaching repository, which changes all day and so is known by
its place. This knowledge is in the user's own state folder, never in a copy of a course.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace as replace_fields

from grader.commands.private_folders import identity_of, is_private
from grader.course import records
from grader.course.course import (
    PUBLIC_COURSE,
    Course,
    find_course,
    load_public,
    packaged_course,
)
from grader.errors import CourseError, GraderError, RequestError
from grader.files import write_whole
from grader.report import without_controls
from grader.submissions.opening import OwnFolder
from grader.trees import NotOpened, read_file
from grader.user_folders import state_folder

MAX_BYTES = 16 * 1024**2  # bytes of one file of a course
MAX_TOTAL = 64 * 1024**2
MAX_RECORD = 16 * 1024  # of what is known of a folder
COPY = "exercises"  # the folder of a course for students
TESTS, RECORDS = f"{COPY}/tests/", f"{COPY}/{records.FOLDER}/"
CONTENTS, FOLDERS, TOLD = "courses", "folders", "told"  # in the state folder
BINARY = ".bin"
S = TypeVar("S", bound=Struct)


@dataclass(frozen=True)
class CourseFiles:
    """The files of a course that are executed or decoded, by their paths in it."""

    contents: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()  # links, and paths that are not regular files of the course

    @property
    def hash(self) -> str:
        """A hash of all files, in which line endings do not count: git may rewrite them."""
        digest = hashlib.sha256()
        for name, data in sorted(self.contents.items()):
            text = data if name.endswith(BINARY) else data.replace(b"\r\n", b"\n")
            digest.update(f"{name}\0{hashlib.sha256(text).hexdigest()}\n".encode())
        return digest.hexdigest()


def files_of(course: Course) -> CourseFiles:
    """Read the files of a course that are executed or decoded, through no link below its folder.

    Raises `RequestError` if they are too many, or too large.
    """
    contents: dict[str, bytes] = {}
    left_out: list[str] = []
    for name, path, within in _places(course):
        try:
            contents[name] = read_file(path, within, MAX_BYTES)
        except FileNotFoundError:
            continue
        except (NotOpened, OSError):
            left_out.append(name)
        if sum(map(len, contents.values())) > MAX_TOTAL:
            raise RequestError(f"the course in {course.root} is too large", "--course DIR")
    return CourseFiles(contents, tuple(left_out))


def _places(course: Course) -> Iterator[tuple[str, Path, Path]]:
    """Yield each file: its path in the course, its place, and the folder that must contain it."""
    if course.suites == "public":
        within = course.student_folder.resolve()
        names = [PUBLIC_COURSE, *map(records.file_of, course.names)]
        names += map(records.sayings_of, course.names)
        names += [f"tests/test_{name}{end}" for name in course.names for end in (".py", ".txt")]
        for name in names:
            yield f"{COPY}/{name}", within / name, within
        return
    within = course.reference
    listed = OwnFolder(within)
    try:
        for entry in listed.entries(within):
            if entry.is_folder and (inside := within / entry.name).name[:1] not in (".", "_"):
                listed.entries(inside)
    except (NotOpened, OSError) as error:
        raise RequestError(f"the course in {course.root} cannot be read: {error}") from None
    for entry in listed.listed:
        if not entry.is_folder:
            place = entry.path.relative_to(course.root).as_posix()
            yield place, entry.path, within


def files_among(files: Mapping[str, bytes]) -> CourseFiles:
    """Return the files of a students' copy that are executed or decoded."""
    folders = (TESTS, RECORDS)
    return CourseFiles(
        {
            name: data
            for name, data in files.items()
            if name == f"{COPY}/{PUBLIC_COURSE}" or name.startswith(folders)
        }
    )


def recognised(course: Course) -> Course:
    """Return a course as trusted if it is known here, else without terminal controls."""
    if course.trusted:
        return course
    if (known := _known(course)) is not None:
        return replace(known, trusted=True)
    return replace(
        course,
        title=without_controls(course.title),
        exercises=tuple(map(_without_controls, course.exercises)),
        lists={name: _without_controls(listed) for name, listed in course.lists.items()},
    )


def course_here() -> Course:
    """Return the course around the current folder, trusted only if it is known here."""
    return recognised(find_course(Path.cwd()))


def refuse_untrusted(course: Course) -> Course:
    """Return a trusted course; raise `RequestError` for any other."""
    if (course := recognised(course)).trusted:
        return course
    problem = f"{course.root} has a course that is new here, and this command would run its code"
    raise RequestError(problem, f"grader trust {course.root}   shows it, and asks once")


def _without_controls(settings: S) -> S:
    """Return settings without terminal controls in the texts that commands print."""
    changed: dict[str, object] = {}
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, str):
            changed[name] = without_controls(value)
        elif isinstance(value, tuple):
            changed[name] = tuple(map(_plain_text, value))
    return replace_fields(settings, **changed)


def _plain_text(value: object) -> object:
    if isinstance(value, Struct):
        return _without_controls(value)
    return without_controls(value) if isinstance(value, str) else value


def _known(course: Course) -> Course | None:
    """Return a course if it is known here, else None.

    If a students' copy is known by its contents, only these bytes count from now on, because its
    files may change a moment later.
    """
    root = course.root.resolve()
    if root in _installed_roots() or _is_known_folder(root):
        return course
    with contextlib.suppress(RequestError, CourseError):
        files = files_of(course)
        if files.left_out:
            return None
        if course.suites == "public":
            course = _as_read(course, files)
        if _is_recorded(CONTENTS, files.hash):
            return course
        if course.suites == "public" and _equals_installed(course, files):
            _record(CONTENTS, files.hash, "the installed course")  # spares the next comparison
            return course
    return None


def _as_read(course: Course, files: CourseFiles) -> Course:
    """Return a students' copy made of the bytes of its files, which it keeps."""
    data = files.contents.get(f"{COPY}/{PUBLIC_COURSE}", b"")
    read = replace(load_public(course.root, data), contents=files.contents)
    return read if read.chosen == course.chosen else read.choose(course.chosen)


def _is_known_folder(root: Path) -> bool:
    """Return whether a folder is known by its place, still the same, and the user's alone."""
    with contextlib.suppress(RequestError, OSError, NotOpened):
        path = _record_of(FOLDERS, str(root))
        if _is_recorded(FOLDERS, str(root)):
            said = read_file(path, path.parent, MAX_RECORD).decode("utf-8", "surrogateescape")
            return said == _of_folder(root) and is_private(root)
    return False


def _of_folder(root: Path) -> str:
    return f"{root}\n{identity_of(root)}\n"


@functools.cache
def _installed_roots() -> tuple[Path, ...]:
    """Return the folders of the installed course and of the checkout that this grader runs in."""
    with contextlib.suppress(GraderError):
        root = packaged_course().root
        return (root, root.resolve())
    return ()


def _equals_installed(course: Course, files: CourseFiles) -> bool:
    """Return whether a students' copy holds only exercises of the installed course."""
    try:
        installed = packaged_course()
    except GraderError:
        return False
    if len(course.names) != len({*course.names}):  # the first file of a name runs
        return False
    if not {*course.names} <= {*installed.names} or course.mute_imports != installed.mute_imports:
        return False
    if any(each != installed[each.name] for each in course.exercises):
        return False
    theirs = files_of(installed).contents
    texts = [f"{TESTS}test_{name}{end}" for name in course.names for end in (".py", ".txt")]
    texts += [f"{COPY}/{records.sayings_of(name)}" for name in course.names]
    if _plain(files.contents, texts) != _plain(theirs, texts):
        return False
    places = [f"{COPY}/{records.file_of(name)}" for name in course.names]
    return all(files.contents.get(place) == theirs.get(place) for place in places)


def _plain(contents: Mapping[str, bytes], names: list[str]) -> list[bytes]:
    return [contents.get(name, b"").replace(b"\r\n", b"\n") for name in names]


def trust_contents(files: CourseFiles, whose: str) -> None:
    """Know a course by its contents from now on; do nothing if nothing can be stored."""
    with contextlib.suppress(OSError):
        _record(CONTENTS, files.hash, whose)


def trust_folder(root: Path) -> bool:
    """Know a teaching repository by its place from now on; return whether that is possible.

    It is possible if only the user can put anything there.
    """
    root = root.resolve()
    if not is_private(root):
        return False
    with contextlib.suppress(RequestError, OSError):
        # Replaces the data about an earlier folder with this path.
        said = _of_folder(root).encode("utf-8", "surrogateescape")
        write_whole(_record_of(FOLDERS, str(root)), said)
        return True
    return False


def first_note_on(course: Course) -> str:
    """Return the note on a course whose code runs confined; nothing if it was shown before."""
    root = str(course.root.resolve())
    if _is_recorded(TOLD, root):
        return ""
    return (
        "The tests here are not those that came with the grader, which is fine. They run confined, "
        f"as your own code does. `grader trust {course.root}` shows what differs."
    )


def remember_note_on(course: Course) -> None:
    """Remember that the user has read the note on a course."""
    with contextlib.suppress(OSError):
        root = str(course.root.resolve())
        _record(TOLD, root, root)


def _state_folder() -> Path:
    if (folder := state_folder()) is None:
        raise RequestError("this user has no home", "export XDG_STATE_HOME=DIR")
    return folder


def _is_recorded(kind: str, what: str) -> bool:
    with contextlib.suppress(RequestError, OSError):
        found = _record_of(kind, what).lstat()
        return stat.S_ISREG(found.st_mode) and (
            not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        )
    return False


def _record(kind: str, what: str, said: str) -> None:
    if not _is_recorded(kind, what):
        with contextlib.suppress(RequestError):
            write_whole(_record_of(kind, what), f"{said}\n")


def _record_of(kind: str, what: str) -> Path:
    name = hashlib.sha256(what.encode("utf-8", "surrogateescape")).hexdigest()
    return _state_folder() / kind / name


def memory_folder(course: Course) -> Path:
    """Return the folder that remembers a student's work with a course.

    It is not in the copy if that is not trusted.
    """
    if course.trusted:
        return course.root
    name = hashlib.sha256(str(course.root.resolve()).encode("utf-8", "surrogateescape"))
    with contextlib.suppress(RequestError):
        return _state_folder() / "copies" / name.hexdigest()
    return course.root
