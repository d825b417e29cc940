"""Collecting an attempt: its parts are put into one folder, zips unpacked, and its files read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions import archives
from grader.submissions.archives import CODE, ZIP_AGAIN, is_code_or_zip, is_zip
from grader.submissions.exercise_files import unsafe_reason
from grader.submissions.layouts.attempt import CLUTTER, Attempt, AttemptPart
from grader.submissions.notes import left_out, printable_name, shortened
from grader.submissions.submission import Submission, discover

# Errors of this machine, for which no student may lose points.
MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


@contextlib.contextmanager
def attempt_folder(attempt: Attempt, notes: list[str] | None = None) -> Iterator[Path]:
    """Yield a folder with the attempt's files, and add a note on each one that is left out.

    For a single folder without zips, this is the folder itself. Otherwise it is a temporary one,
    to which the files are copied and zips unpacked.
    """
    notes = [] if notes is None else notes
    paths = [part.path for part in attempt.parts]
    if len(paths) == 1 and paths[0].is_dir() and not _holds_zips(paths[0]):
        yield paths[0]
        return
    with TemporaryDirectory(prefix="grader-attempt-") as name:
        parts = [inner for part in attempt.parts for inner in _inner_parts(part)]
        copier = _Copier(Path(name), notes)
        for part in parts:
            copier.put(part, alone=len(parts) == 1)
        yield Path(name)


def collect(attempt: Attempt, course: Course) -> Submission:
    """Return the attempt's submission; if it cannot be read, every exercise has the reason.

    Raises `RequestError` if this machine is the reason, such as a full disk.
    """
    notes: list[str] = []
    try:
        with attempt_folder(attempt, notes) as folder:
            if any(folder.iterdir()):
                return _read(attempt, course, folder, shortened(notes))
            reason = "; ".join(shortened([*attempt.notes, *notes])) or "no file was handed in"
    except OSError as error:
        if error.errno in MACHINE_ERRORS:
            raise RequestError(
                f"cannot read what {attempt.student} handed in: {error.strerror}",
                "fix that, and run the same command again",
            ) from None
        # Students read this, so it must not name the folders of this machine.
        reason = f"{error.strerror}: '{_name_for_student(error, attempt)}'"
    return _unusable(attempt, course, reason)


def _read(attempt: Attempt, course: Course, folder: Path, notes: list[str]) -> Submission:
    try:
        found = discover([folder], course, inside=True)
    except RequestError as error:
        label = attempt.parts[0].name if len(attempt.parts) == 1 else attempt.student
        reason = "; ".join([error.message.replace(str(folder), label), *notes])
        return _unusable(attempt, course, printable_name(reason))
    return replace(found, name=attempt.student, notes=(*attempt.notes, *notes, *found.notes))


def _unusable(attempt: Attempt, course: Course, reason: str) -> Submission:
    problems = dict.fromkeys(course.names, reason)
    return Submission(attempt.student, {}, problems=problems, notes=attempt.notes)


def _name_for_student(error: OSError, attempt: Attempt) -> str:
    """Return the file of an error under the name that its student gave it."""
    file = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    for part in attempt.parts:
        if file is not None and file.is_relative_to(part.path):
            return printable_name(str(Path(part.name) / file.relative_to(part.path)))
    return printable_name(attempt.student)


def _holds_zips(folder: Path) -> bool:
    return any(is_zip(path) and not unsafe_reason(path) for path in folder.iterdir())


def _inner_parts(part: AttemptPart) -> list[AttemptPart]:
    """Return the part itself or, for a folder that holds zips, its contents."""
    if not part.path.is_dir() or not _holds_zips(part.path):
        return [part]
    return [
        AttemptPart(path, path.name)
        for path in sorted(part.path.iterdir())
        if path.is_dir() or is_code_or_zip(path)
    ]


class _Copier:
    """Puts the parts of one attempt into a folder, within the limits of one zip."""

    def __init__(self, folder: Path, notes: list[str]) -> None:
        self._folder, self._notes = folder, notes
        self._files, self._bytes = archives.MAX_MEMBERS, archives.MAX_UNPACKED_BYTES

    def put(self, part: AttemptPart, alone: bool) -> None:
        """Copy a file, a folder or the contents of a zip, which may be the `alone` part."""
        name = Path(part.name).name or part.path.name
        if part.path.is_symlink():
            self._leave_out(name, "is a link")
        elif part.path.is_dir():
            self._copy_folder(part.path, self._folder / name)
        elif is_zip(Path(name)):
            self._unzip(part.path, name, alone)
        else:
            self._copy(part.path, self._folder / name)

    def _leave_out(self, name: str, why: str) -> None:
        self._notes.append(left_out(printable_name(name), why))

    def _spend(self, file: Path) -> bool:
        """Count a file against the limits; return whether they still hold."""
        self._files -= 1
        self._bytes -= file.stat().st_size
        return self._files >= 0 and self._bytes >= 0

    def _unzip(self, path: Path, name: str, alone: bool) -> None:
        """Unpack a zip; if it is not alone, without the folder that wraps its files."""
        members, unpacked_bytes = max(0, self._files), max(0, self._bytes)
        limits = replace(archives.STUDENT, members=members, unpacked=unpacked_bytes)
        try:
            with archives.unpacked(path, self._notes, limits) as unpacked:
                for file in filter(Path.is_file, unpacked.rglob("*")):
                    self._spend(file)
                for entry in sorted((unpacked if alone else _unwrapped(unpacked)).iterdir()):
                    if (self._folder / entry.name).exists():
                        self._leave_out(entry.name, f"appears again in {printable_name(name)}")
                    else:
                        shutil.move(entry, self._folder / entry.name)
        except archives.UnreadableArchive as error:
            self._notes.append(f"{printable_name(name)}: {error}; {ZIP_AGAIN}")

    def _copy_folder(self, folder: Path, into: Path) -> None:
        for place, folders, files in os.walk(folder):
            depth = len(Path(place).relative_to(folder).parts)
            deeper = sorted(folders) if depth < archives.MAX_DEPTH else []
            folders[:] = [name for name in deeper if not name.startswith((".", "__"))]
            for path in (Path(place, name) for name in sorted(files)):
                if path.suffix in CODE:
                    self._copy(path, into / path.relative_to(folder))

    def _copy(self, path: Path, to: Path) -> None:
        if reason := unsafe_reason(path):
            self._leave_out(to.name, reason)
        elif to.exists():
            self._leave_out(to.name, "appears again")
        elif not self._spend(path):
            self._leave_out(to.name, "exceeds the limits of one submission")
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to, follow_symlinks=False)


def _unwrapped(folder: Path) -> Path:
    """Return the folder or, as long as it holds one folder and no exercise, that one."""
    while True:
        inside = [entry for entry in folder.iterdir() if entry.name not in CLUTTER]
        if len(inside) != 1 or not inside[0].is_dir() or (inside[0] / "solution.py").exists():
            return folder
        folder = inside[0]
