"""Collects an attempt: puts its parts into one folder, unpacks zips, and reads the files."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs

from grader.course.course import Course
from grader.errors import RequestError
from grader.packed import UnreadableArchive
from grader.scratch import scratch_folder
from grader.submissions import archives
from grader.submissions.archives import (
    ZIP_AGAIN,
    is_archive,
    is_code_or_opened,
    is_opened,
    unopened_reason,
    without_suffix,
)
from grader.submissions.folders import is_searched
from grader.submissions.layouts.attempt import Attempt, AttemptPart
from grader.submissions.layouts.commits import UNREADABLE, write_files
from grader.submissions.notes import (
    as_reason,
    flags_first,
    for_review,
    left_out,
    printable_name,
    quoted,
    shortened,
)
from grader.submissions.opening import Entry, OwnFolder, code_stem, code_suffix, is_clutter
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import ReadingFailed, ReadingImpossible
from grader.submissions.reader.host import exercise_names, readers
from grader.submissions.reader.sharing import require_own_reader
from grader.submissions.submission import (
    PLAIN_FILES,
    Submission,
    accepted,
    read_submission,
)
from grader.trees import NotOpened, open_file, refusal

MAX_ZIPS = 20  # in one attempt
MAX_FOLDER_NAME = 50  # characters
TOO_MUCH = "exceeds the limits of one submission"
# Errors of this machine, for which no student may lose points. Too little memory and too many open
# files are not among them, because a reader has its own limits on these.
MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.ENFILE, errno.EIO)


@contextlib.contextmanager
def attempt_folder(attempt: Attempt, notes: list[str] | None = None) -> Iterator[Path]:
    """Yield a folder with the attempt's files, and add a note on each one that is left out.

    For a single folder without zips, this is the folder itself. Otherwise it is a temporary one,
    to which the files are copied, and to which zips are unpacked.
    """
    notes = [] if notes is None else notes
    parts = [inner for part in attempt.parts for inner in _inner_parts(part, notes)]
    is_whole = [part.path for part in parts] == [part.path for part in attempt.parts]
    if is_whole and len(parts) == 1 and parts[0].is_folder:
        yield parts[0].path
        return
    with TemporaryDirectory(prefix="grader-attempt-") as name:
        copier = _Copier(Path(name), notes)
        for part in parts:
            copier.put(part)
        yield copier.folder(alone=len(parts) == 1)


def collect(attempt: Attempt, course: Course) -> Submission:
    """Return the attempt's submission, as a reader reads it.

    If it cannot be read, every exercise has the reason. Raises `RequestError` if this machine is
    the reason, such as a full disk.
    """
    if not attempt.commit:
        return _collect(attempt, course)
    (part,) = attempt.parts
    with scratch_folder("commit") as folder:
        try:
            flags = map(for_review, write_files(part.path, attempt.commit, folder))
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
                why = f"cannot write the files of a commit: {error.strerror}"
                raise RequestError(why, "fix that, and run the same command again") from None
            return unread(attempt, course, "its commits cannot be read")
        notes, parts = (*attempt.notes, *flags), (AttemptPart(folder, part.name),)
        return _collect(replace(attempt, parts=parts, root=None, notes=notes), course)


def _collect(attempt: Attempt, course: Course) -> Submission:
    parts = tuple(
        messages.PartToRead(os.fsencode(part.path.absolute()), os.fsencode(part.name))
        for part in attempt.parts
    )
    student = os.fsencode(attempt.student)
    job = messages.ReadAttempt(exercise_names(course), student, parts, attempt.notes)
    try:
        paths = [part.path for part in attempt.parts]
        answer = readers().ask(job, messages.FilesRead, paths, root=attempt.root)
        return replace(accepted(answer, course), name=attempt.student)
    except ReadingImpossible as error:
        reason = str(error)
    except ReadingFailed as error:
        reason = f"{error}; {PLAIN_FILES}"
    return unread(attempt, course, reason)


def unread(attempt: Attempt, course: Course, reason: str) -> Submission:
    """Return the submission of an attempt that is not read: every exercise has the reason."""
    problems = dict.fromkeys(course.names, reason)
    return Submission(attempt.student, {}, problems=problems, notes=attempt.notes)


def read_attempt(attempt: Attempt, course: Course) -> messages.FilesRead:
    """Read the files of an attempt; if they cannot be read, every exercise has the reason.

    Only a reader calls this. Raises `OSError` if this machine seems to be the reason.
    """
    notes: list[str] = []
    try:
        with attempt_folder(attempt, notes) as folder:
            if any(folder.iterdir()):
                return _read(attempt, course, folder, shortened(flags_first(notes)))
            reason = as_reason(shortened([*attempt.notes, *notes])) or "no file was handed in"
    except OSError as error:
        if error.errno in MACHINE_ERRORS:
            raise
        # Students read this, so it must not show the folders of this machine.
        reason = f"{error.strerror}: '{_name_for_student(error, attempt)}'"
    except NotOpened as error:
        reason = f"{_label(attempt)} {error}; hand in the exercise files alone"
    return _unusable(attempt, course, reason)


def _read(attempt: Attempt, course: Course, folder: Path, notes: list[str]) -> messages.FilesRead:
    try:
        read = read_submission([folder], course, inside=True)
    except RequestError as error:
        reason = as_reason([error.message.replace(str(folder), _label(attempt)), *notes])
        return _unusable(attempt, course, printable_name(reason))
    notes = flags_first([*attempt.notes, *notes, *shortened(read.notes)])
    return structs.replace(read, name=attempt.student, notes=tuple(notes))


def _label(attempt: Attempt) -> str:
    """Return the student's name for the attempt."""
    return printable_name(attempt.parts[0].name if len(attempt.parts) == 1 else attempt.student)


def _unusable(attempt: Attempt, course: Course, reason: str) -> messages.FilesRead:
    problems = dict.fromkeys(course.names, reason)
    return messages.FilesRead(attempt.student, {}, {}, {}, problems, attempt.notes)


def _name_for_student(error: OSError, attempt: Attempt) -> str:
    """Return the file of an error under the name that its student gave it."""
    file = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    for part in attempt.parts:
        if file is not None and file.is_relative_to(part.path):
            return printable_name(str(Path(part.name) / file.relative_to(part.path)))
    return printable_name(attempt.student)


@dataclass(frozen=True)
class _InnerPart:
    """A file or folder of an attempt, which is opened in the folder `within`."""

    path: Path
    name: str
    within: Path
    is_folder: bool


def _inner_parts(part: AttemptPart, notes: list[str]) -> list[_InnerPart]:
    """Return the part itself or, for a folder that holds zips, its contents."""
    path, within = part.path, part.path.parent
    whole = _InnerPart(path, part.name, within, path.is_dir() and not path.is_symlink())
    if not whole.is_folder:
        return [whole]
    entries = OwnFolder(within).entries(path)
    zips = [entry for entry in entries if is_opened(entry.name)]
    refused = [(entry.name, refusal(entry.path, within)) for entry in zips]
    if all(why != "" for _, why in refused):
        notes += [_left_out(name, why) for name, why in refused if why]
        return [whole]
    notes += [
        _left_out(one.name, unopened_reason(one.name)) for one in entries if _is_unopened(one)
    ]
    return [
        _InnerPart(entry.path, entry.name, within, entry.is_folder)
        for entry in entries
        if is_code_or_opened(entry.name)
        or (entry.kind in ("folder", "link") and is_searched(entry.name))
    ]


def _left_out(name: str, why: str) -> str:
    return for_review(left_out(name, why))


def _is_unopened(entry: Entry) -> bool:
    """Return whether a file is an archive of a kind that is not opened."""
    is_file = entry.kind == "file" and not entry.name.startswith(".")
    return is_file and is_archive(entry.name) and not is_opened(entry.name)


class _Copier:
    """Puts the parts of one attempt into a folder, within the limits of one zip."""

    def __init__(self, scratch: Path, notes: list[str]) -> None:
        self._folder, self._staging, self._notes = scratch / "files", scratch / "zips", notes
        self._files, self._bytes = archives.MAX_MEMBERS, archives.MAX_UNPACKED_BYTES
        self._unpacked: list[tuple[str, Path]] = []  # the name and contents of each zip
        self._zips = MAX_ZIPS
        self._folder.mkdir()

    def put(self, part: _InnerPart) -> None:
        """Copy a file or a folder, or unpack a zip."""
        name = Path(part.name).name or part.path.name
        try:
            if part.is_folder:
                self._copy_folder(part, self._folder / name)
            elif is_opened(name):
                self._unzip(part, name)
            else:
                self._copy(part.path, self._folder / name, part.within)
        except NotOpened as error:
            self._leave_out(name, str(error))

    def folder(self, alone: bool) -> Path:
        """Return the folder with all parts, of which a zip may be the `alone` one.

        The files of a zip are there without the folder that wraps them, unless the zip is alone.
        If another file has one of their names, they are in a folder named after the zip.
        """
        contents = [
            (name, sorted((path if alone else _unwrapped(path)).iterdir()))
            for name, path in self._unpacked
        ]
        inside = [each.name for _, entries in contents for each in entries]
        counts = Counter([*inside, *(entry.name for entry in self._folder.iterdir())])
        for name, entries in contents:
            wanted = [entry for entry in entries if not is_clutter(entry.name)]
            is_clash = any(counts[entry.name] > 1 for entry in wanted)
            into = self._new_folder(name, counts) if is_clash else self._folder
            for entry in wanted:
                shutil.move(entry, into / entry.name)
        return self._folder

    def _new_folder(self, zip_name: str, taken: Mapping[str, int]) -> Path:
        """Make a folder that is named after a zip and searched for exercises."""
        name = without_suffix(zip_name)
        name = code_stem(name) if code_suffix(name) else name
        name = name.lstrip("._ ")[:MAX_FOLDER_NAME] or "zip"
        names = itertools.chain([name], (f"{name} {number}" for number in itertools.count(2)))
        free = (each for each in names if each not in taken)
        folder = next(each for each in map(self._folder.joinpath, free) if not each.exists())
        folder.mkdir()
        return folder

    def _leave_out(self, name: str, why: str) -> None:
        self._notes.append(_left_out(name, why))

    def _spend(self, size: int) -> bool:
        """Count a file against the limits; return whether they still hold."""
        self._files -= 1
        self._bytes -= size
        return self._files >= 0 and self._bytes >= 0

    def _unzip(self, part: _InnerPart, name: str) -> None:
        self._zips -= 1
        why = TOO_MUCH if self._zips < 0 else refusal(part.path, part.within)
        if why:
            self._leave_out(name, why)
            return
        members, unpacked_bytes = max(0, self._files), max(0, self._bytes)
        limits = replace(archives.STUDENT, members=members, unpacked=unpacked_bytes)
        into = self._staging / str(len(self._unpacked))
        into.mkdir(parents=True)
        try:
            archives.unpack(part.path, into, self._notes, limits, part.within)
        except UnreadableArchive as error:
            self._notes.append(for_review(f"{quoted(name)}: {error}; {ZIP_AGAIN}"))
            shutil.rmtree(into)
            return
        for file in filter(Path.is_file, into.rglob("*")):
            self._spend(file.stat().st_size)
        self._unpacked.append((name, into))

    def _copy_folder(self, part: _InnerPart, into: Path) -> None:
        # Everything is listed before anything is copied, so that a folder that is too large is
        # left out.
        for path in list(self._code_in(part.path, OwnFolder(part.within))):
            self._copy(path, into / path.relative_to(part.path), part.within)

    def _code_in(self, folder: Path, own: OwnFolder, depth: int = 0) -> Iterator[Path]:
        """Yield the Python files and notebooks in a folder and, down to a limit, in those in it."""
        try:
            entries = own.entries(folder)
        except OSError as error:
            self._leave_out(folder.name, _cannot_be_read(error))
            return
        yield from (one.path for one in entries if code_suffix(one.name) and not one.is_folder)
        for entry in entries:
            if entry.kind == "file" and is_archive(entry.name) and not entry.name.startswith("."):
                self._leave_out(entry.name, unopened_reason(entry.name))
        if depth < archives.MAX_DEPTH:
            for entry in entries:
                if entry.is_folder and is_searched(entry.name):
                    yield from self._code_in(entry.path, own, depth + 1)

    def _copy(self, path: Path, to: Path, within: Path) -> None:
        try:
            stream = open_file(path, within)
        except NotOpened as error:
            self._leave_out(to.name, str(error))
            return
        except OSError as error:
            self._leave_out(to.name, _cannot_be_read(error))
            return
        with stream:
            size = os.fstat(stream.fileno()).st_size
            if to.exists():
                self._leave_out(to.name, "appears again")
            elif not self._spend(size):
                self._leave_out(to.name, TOO_MUCH)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(stream.read(size))


def _cannot_be_read(error: OSError) -> str:
    """Return why a file is left out; raise the error if it is this machine's."""
    if error.errno in MACHINE_ERRORS:
        raise error
    require_own_reader()
    return f"cannot be read ({error.strerror})"


def _unwrapped(folder: Path) -> Path:
    """Return the folder or, as long as it holds one folder and no exercise, that one."""
    while True:
        inside = [entry for entry in folder.iterdir() if not is_clutter(entry.name)]
        if len(inside) != 1 or not inside[0].is_dir() or (inside[0] / "solution.py").exists():
            return folder
        folder = inside[0]
