"""Unpacking untrusted archives: only wanted files, within limits, only into the target folder.

A member that is a link, is encrypted or points outside is left out, with a note. A student's
archive that breaks a limit is refused as a whole. In the archive of a class the limits apply to
each student's part, and only the member or the part that breaks one is left out, so that one
student's files do not stop all the others.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from tarfile import TarError
from tempfile import TemporaryDirectory

from grader.files import DAMAGED_ZIP
from grader.packed import (
    MAX_RATIO,
    SMALL,
    PackedFile,
    TooLarge,
    UnreadableArchive,
    read_within,
    stays_inside,
)
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.notes import for_review, left_out, printable_text
from grader.submissions.opening import MAX_ENTRIES, code_stem, code_suffix, is_clutter
from grader.submissions.reader.sharing import require_own_reader
from grader.submissions.tars import tar_members
from grader.trees import NotOpened, open_file
from grader.zips import zip_members

OPENED = (".zip", ".tar", ".tar.gz", ".tgz")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".xz", ".bz2")
ZIP_AGAIN = "zip the exercise files again, or hand in the folder itself"
MIB, GIB = 1 << 20, 1 << 30
MAX_MEMBERS = 2000
MAX_UNPACKED_BYTES = 32 * MIB
MAX_DEPTH = 12  # nested folders
MAX_PADDING = 4  # the most that a tar may be longer than the files unpacked of it, as a factor
DAMAGED = (*DAMAGED_ZIP, TarError)
MEMBER_ERRORS = (*DAMAGED, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of an archive: sizes in bytes, numbers of files and of nested folders.

    `member` and `notebook` limit one file. `listing` is the size of the list of members, which is
    read before anything else. The archive of a student is `strict`: it is refused as a whole if one
    member breaks a limit, and only code is unpacked. Of the archive of a class only that member is
    left out, every file is unpacked, and an archive inside is a file like any other. A part is what
    one student handed in: the members that share a folder at the top, or a file there.
    """

    archive: int = 32 * MIB
    members: int = MAX_MEMBERS
    member: int = 8 * MIB
    notebook: int = MAX_UNPACKED_BYTES
    unpacked: int = MAX_UNPACKED_BYTES
    listing: int = MIB
    part_members: int = MAX_MEMBERS
    part_unpacked: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH
    strict: bool = True


STUDENT = ArchiveLimits()
CLASS = ArchiveLimits(
    archive=8 * GIB,
    members=1_000_000,
    member=64 * MIB,
    notebook=64 * MIB,
    unpacked=8 * GIB,
    listing=256 * MIB,
    part_members=MAX_ENTRIES,
    part_unpacked=256 * MIB,
    depth=2 * MAX_DEPTH,
    strict=False,
)


def is_opened(name: str) -> bool:
    """Return whether a file is named like an archive that is opened, in upper or lower case."""
    return name.lower().endswith(OPENED)


def without_suffix(name: str) -> str:
    """Return the name of a file without its suffix, which may be `.tar.gz` or `.py.txt`."""
    if code_suffix(name):
        return code_stem(name)
    stem = os.path.splitext(name)[0]
    return os.path.splitext(stem)[0] if stem.lower().endswith(".tar") else stem


def is_archive(name: str) -> bool:
    """Return whether a file is named like any archive, in upper or lower case."""
    return name.lower().endswith(ARCHIVES)


def is_code_or_opened(name: str) -> bool:
    """Return whether a file is named like Python, a notebook or an archive that is opened."""
    return bool(code_suffix(name)) or is_opened(name)


def unopened_reason(name: str) -> str:
    """Return why an archive in a folder of a submission is not opened."""
    if is_opened(name):
        return "is an archive in a folder, where none is opened (unpack it)"
    return "is an archive that is not opened here (zip the files instead)"


@contextlib.contextmanager
def unpacked(
    archive: Path, notes: list[str], limits: ArchiveLimits = STUDENT, within: Path | None = None
) -> Iterator[Path]:
    """Yield a temporary folder with the archive's files; see `unpack`."""
    with TemporaryDirectory(prefix="grader-zip-") as name:
        unpack(archive, Path(name), notes, limits, within)
        yield Path(name)


def unpack(
    archive: Path,
    into: Path,
    notes: list[str],
    limits: ArchiveLimits = STUDENT,
    within: Path | None = None,
    part_notes: dict[str, list[str]] | None = None,
) -> None:
    """Write the wanted files, and a note on each one left out. Raises `UnreadableArchive`.

    The archive is opened in the folder `within` (see `open_file`), or else in its own folder. The
    notes on each part are also added to `part_notes`, by its path.
    """
    require_own_reader()
    try:
        stream = open_file(archive, within or archive.parent, limits.archive)
        with _members(stream, archive.suffix.lower() == ".zip", limits) as members:
            _Unpacking(members, into, notes, limits, part_notes).run()
    except NotOpened as error:
        raise UnreadableArchive(f"the archive {error}") from None
    except MEMBER_ERRORS as error:
        reason = printable_text(str(error)) or "it is damaged"
        raise UnreadableArchive(f"the archive cannot be read: {reason}") from None


def _members(
    stream: BufferedReader, is_zip: bool, limits: ArchiveLimits
) -> AbstractContextManager[list[PackedFile]]:
    """Return the members of an archive, which close the stream at their end."""
    if is_zip:
        return zip_members(stream, limits.members, limits.listing)
    return tar_members(stream, limits.members, MAX_PADDING * limits.unpacked)


class _Unpacking:
    """The unpacking of one archive."""

    def __init__(
        self,
        members: Iterable[PackedFile],
        into: Path,
        notes: list[str],
        limits: ArchiveLimits,
        part_notes: dict[str, list[str]] | None,
    ) -> None:
        self._into, self._limits = into, limits
        self._notes, self._part_notes = notes, {} if part_notes is None else part_notes
        self._wanted = [member for member in members if _is_wanted(member.path, limits)]
        self._depth = _depth_of_parts(member.path for member in self._wanted)
        self._room, self._used = limits.unpacked, Counter[tuple[str, ...]]()

    def run(self) -> None:
        """Write every wanted member within the limits."""
        refused = self._refused_parts()
        for member in self._wanted:
            if self._part(member.path) in refused:
                continue
            if reason := _unsafe_reason(member, self._limits):
                self._leave_out(member.path, reason)
            else:
                self._unpack(member)

    def _unpack(self, member: PackedFile) -> None:
        limits, path = self._limits, member.path
        part = self._part(path)
        most = limits.notebook if code_suffix(path.name) == NOTEBOOK else limits.member
        here = min(self._room, limits.part_unpacked - self._used[part])
        try:
            data = _read(member, min(here, most))
        except (TooLarge, *MEMBER_ERRORS) as error:
            if limits.strict or self._room < most:
                raise
            self._leave_out(path, f"cannot be used ({printable_text(str(error))})")
            # Counted against the limits, because reading it has cost up to this much.
            cost = min(here, most, SMALL + MAX_RATIO * member.packed)
        else:
            cost = len(data)
            if reason := _write(self._into / path, data):
                self._leave_out(path, reason)
        self._room -= cost
        self._used[part] += cost

    def _refused_parts(self) -> set[tuple[str, ...]]:
        """Leave out the parts with too many members; return them."""
        most = self._limits.part_members
        counts = Counter(self._part(member.path) for member in self._wanted)
        refused = {part for part, count in counts.items() if count > most}
        for part in refused:
            self._leave_out(PurePosixPath(*part), f"holds more than {most} files", is_part=True)
        return refused

    def _part(self, path: PurePosixPath) -> tuple[str, ...]:
        return path.parts[: self._depth]

    def _leave_out(self, path: PurePosixPath, why: str, *, is_part: bool = False) -> None:
        """Add a note on a member or on a part; the folder of the part stays, so it is graded."""
        note = left_out(printable_text(str(path)), why)
        if is_part or code_suffix(path.name) or is_archive(path.name):
            note = for_review(note)
        self._notes.append(note)
        part = PurePosixPath(*self._part(path))
        is_folder = is_part or len(path.parts) > self._depth
        if not self._limits.strict and is_folder and stays_inside(part):
            self._part_notes.setdefault(str(part), []).append(note)
            with contextlib.suppress(OSError, ValueError):  # a name that no folder can have
                (self._into / part).mkdir(parents=True, exist_ok=True)


def _is_wanted(path: PurePosixPath, limits: ArchiveLimits) -> bool:
    """Return whether a file in an archive has a name, of a student's archive one that may count."""
    is_wanted = not limits.strict or code_suffix(path.name) or is_archive(path.name)
    return bool(path.parts and is_wanted)


def _depth_of_parts(paths: Iterable[PurePosixPath]) -> int:
    """Return how many names of a path identify the student: 2 if a folder wraps all, else 1."""
    tops = {path.parts[0] for path in paths if not is_clutter(path.parts[0])}
    return 2 if len(tops) == 1 else 1


def _unsafe_reason(member: PackedFile, limits: ArchiveLimits) -> str:
    """Return why a member must not be unpacked; empty if it may be."""
    path = member.path
    if limits.strict and is_archive(path.name):
        return "is an archive in an archive"
    if not stays_inside(path):
        return "points outside the archive"
    if len(path.parts) > limits.depth:
        return f"is more than {limits.depth} folders deep"
    return member.refusal


def _read(member: PackedFile, room: int) -> bytes:
    """Return a member's bytes; raise `TooLarge`, with its name, if they are too many."""
    try:
        return read_within(member, room)
    except TooLarge as error:
        raise TooLarge(f"{printable_text(str(member.path))} {error}") from None


def _write(file: Path, data: bytes) -> str:
    """Write a file; return why that is impossible, or an empty string.

    `tar -r` and `tar -u` add a new version and leave the old one in place, so the last one counts.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            stream.write(data)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise UnreadableArchive("there is not enough disk space to unpack it") from None
        reason = getattr(error, "strerror", None) or str(error)
        return f"cannot be written ({printable_text(reason)})"
    return ""
