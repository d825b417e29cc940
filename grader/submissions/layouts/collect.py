"""From an attempt to its submission: its parts in one folder, zips opened, and what that holds."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.submissions import archives
from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts.attempt import CLUTTER, Attempt, Part
from grader.submissions.submission import CODE, Submission, discover, shortened, shown, unwelcome

NOTHING = "no file was handed in"
# What this machine lacks, which no student is to blame for.
OURS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


@contextlib.contextmanager
def gathered(attempt: Attempt, notes: list[str] | None = None) -> Iterator[Path]:
    """A folder that holds the attempt's files; what is left out of it joins `notes`.

    A folder that was handed in is its own. Anything else is copied, and zips are unpacked, into a
    folder that lasts as long as the block.
    """
    notes = [] if notes is None else notes
    paths = [part.path for part in attempt.parts]
    if len(paths) == 1 and paths[0].is_dir() and not _zips_in(paths[0]):
        yield paths[0]
        return
    with TemporaryDirectory(prefix="grader-attempt-") as name:
        parts = [inner for part in attempt.parts for inner in _inner(part)]
        room = _Room()
        for part in parts:
            _put(part, Path(name), notes, room, alone=len(parts) == 1)
        yield Path(name)


def collect(attempt: Attempt, course: Course) -> Submission:
    """The attempt's submission; of one that cannot be read, every exercise has the reason."""
    notes: list[str] = []
    label = attempt.parts[0].name if len(attempt.parts) == 1 else attempt.student
    try:
        with gathered(attempt, notes) as folder:
            if not any(folder.iterdir()):
                reason = "; ".join(shortened([*attempt.notes, *notes])) or NOTHING
                return _unusable(attempt, course, reason)
            return _found(attempt, course, folder, label, notes)
    except OSError as error:
        if error.errno in OURS:
            raise RequestError(
                f"cannot read what {attempt.student} handed in: {error.strerror}",
                "mend that, and run the same command again",
            ) from None
        # Students read this: where the class lies on this machine is not for them.
        return _unusable(attempt, course, f"{error.strerror}: '{_relative(error, attempt)}'")


def _found(
    attempt: Attempt, course: Course, folder: Path, label: str, notes: list[str]
) -> Submission:
    try:
        found = discover([folder], course, inside=True)
    except RequestError as error:
        reason = "; ".join([error.message.replace(str(folder), label), *shortened(notes)])
        return _unusable(attempt, course, shown(reason))
    told = (*attempt.notes, *shortened(notes), *found.notes)
    return Submission(attempt.student, found.files, found.paths, found.problems, told)


def _unusable(attempt: Attempt, course: Course, reason: str) -> Submission:
    problems = dict.fromkeys(course.names, reason)
    return Submission(attempt.student, {}, problems=problems, notes=attempt.notes)


def _relative(error: OSError, attempt: Attempt) -> str:
    """The file of an error, as its student knows it."""
    file = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    for part in attempt.parts:
        if file is not None and file.is_relative_to(part.path):
            return shown(str(Path(part.name) / file.relative_to(part.path)))
    return shown(attempt.student)


def _zips_in(folder: Path) -> bool:
    return any(path.suffix.lower() == ".zip" and not unwelcome(path) for path in folder.iterdir())


def _inner(part: Part) -> list[Part]:
    """A part or, of a folder that holds zips, what is in it."""
    if not part.path.is_dir() or not _zips_in(part.path):
        return [part]
    return [
        Part(path, path.name)
        for path in sorted(part.path.iterdir())
        if path.is_dir() or path.suffix.lower() in (*CODE, ".zip")
    ]


class _Room:
    """How much of one attempt is copied at most: as much as a zip may hold."""

    def __init__(self) -> None:
        self.files, self.bytes = archives.MAX_MEMBERS, archives.MAX_UNPACKED_BYTES

    def take(self, path: Path) -> bool:
        """Whether there is room for a file, which is then taken."""
        self.files -= 1
        self.bytes -= path.stat().st_size
        return self.files >= 0 and self.bytes >= 0


def _put(part: Part, into: Path, notes: list[str], room: _Room, alone: bool) -> None:
    name = Path(part.name).name or part.path.name
    if part.path.is_symlink():
        notes.append(f"{shown(name)} is a link and was left out")
    elif part.path.is_dir():
        _copy_folder(part.path, into / name, notes, room)
    elif Path(name).suffix.lower() == ".zip":
        _unzip(part.path, name, into, notes, room, alone)
    else:
        _copy(part.path, into / name, notes, room)


def _unzip(path: Path, name: str, into: Path, notes: list[str], room: _Room, alone: bool) -> None:
    """Unpack a zip among the other parts, without the folder that wraps what it holds."""
    try:
        left = replace(archives.STUDENT, unpacked=max(0, room.bytes), members=max(0, room.files))
        with archives.unpacked(path, notes, left) as folder:
            for file in folder.rglob("*"):
                if file.is_file():
                    room.take(file)
            top = folder if alone else _unwrapped(folder)
            for entry in sorted(top.iterdir()):
                if (into / entry.name).exists():
                    lies = f"{shown(entry.name)} lies in {shown(name)} once more"
                    notes.append(f"{lies} and was left out")
                else:
                    shutil.move(entry, into / entry.name)
    except archives.Unreadable as error:
        advice = "zip the exercise files again, or hand in the folder itself"
        notes.append(f"{shown(name)}: {error}; {advice}")


def _unwrapped(folder: Path) -> Path:
    """The folder or, if a single one lies in it that is no exercise's, that one, and so on."""
    while True:
        inside = [entry for entry in folder.iterdir() if entry.name not in CLUTTER]
        if len(inside) != 1 or not inside[0].is_dir() or (inside[0] / "solution.py").exists():
            return folder
        folder = inside[0]


def _copy_folder(folder: Path, into: Path, notes: list[str], room: _Room) -> None:
    """Copy the Python files and notebooks of a folder, but no hidden ones and no links."""
    for place, folders, files in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith((".", "__")) and depth < archives.MAX_DEPTH
        ]
        for name in sorted(files):
            if Path(name).suffix in CODE:
                path = Path(place) / name
                _copy(path, into / path.relative_to(folder), notes, room)


def _copy(path: Path, to: Path, notes: list[str], room: _Room) -> None:
    if why := unwelcome(path):
        notes.append(f"{shown(to.name)} {why} and was left out")
    elif to.exists():
        notes.append(f"{shown(to.name)} is there once more and was left out")
    elif not room.take(path):
        notes.append(f"{shown(to.name)} is more than there is room for and was left out")
    else:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to, follow_symlinks=False)
