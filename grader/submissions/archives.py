"""Unpacking untrusted zips: only wanted files, within limits, and only into the target folder.

A member that is a link, is encrypted or points outside is left out, with a note. A student's
archive that breaks a limit is refused as a whole. In the archive of a class the limits apply to
each student's part, and only the member or the part that breaks one is left out, so that one
student's files do not stop all the others.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile, ZipInfo

from grader.sandbox.cells import NOTEBOOK
from grader.submissions.notes import left_out, printable_text
from grader.submissions.opening import MAX_ENTRIES, NotOpened, open_file
from grader.submissions.reader.sharing import require_own_reader

CODE = (".py", NOTEBOOK)  # suffixes of the files that can be graded
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".xz", ".bz2")
ZIP_AGAIN = "zip the exercise files again, or hand in the folder itself"
MIB, GIB = 1 << 20, 1 << 30
MAX_MEMBERS = 2000
MAX_UNPACKED_BYTES = 32 * MIB
MAX_RATIO = 200  # unpacked to packed bytes, for members larger than SMALL
SMALL = 64 * 1024
MAX_DEPTH = 12  # nested folders
MAX_EXTRA = 1024  # bytes of extra fields of one member; `zipfile` needs their square in time
LISTED, LISTED_BYTES = b"PK\1\2", 46  # how a member in the list begins, and its fixed length
MAC_FOLDER = "__MACOSX"  # macOS adds it to zips
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others unpack without a memory limit
DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError)
ZIP_ERRORS = (*DAMAGED, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of an archive: sizes in bytes, numbers of files and of nested folders.

    `listing` is the size of the archive's list of members, which is read before anything else.
    Only files with one of the `suffixes` are unpacked. If there are none, every file is, and an
    archive inside the archive is a file like any other. `strict` refuses the whole archive if one
    member breaks a limit; otherwise only that member is left out. A part is what one student
    handed in: the members that share a folder at the top, or a file there.
    """

    archive: int = 16 * MIB
    members: int = MAX_MEMBERS
    member: int = 8 * MIB
    unpacked: int = MAX_UNPACKED_BYTES
    listing: int = MIB
    part_members: int = MAX_MEMBERS
    part_unpacked: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH
    suffixes: tuple[str, ...] = CODE
    strict: bool = True


STUDENT = ArchiveLimits()
CLASS = ArchiveLimits(
    archive=8 * GIB,
    members=1_000_000,
    member=64 * MIB,
    unpacked=8 * GIB,
    listing=256 * MIB,
    part_members=MAX_ENTRIES,
    part_unpacked=256 * MIB,
    depth=2 * MAX_DEPTH,
    suffixes=(),
    strict=False,
)


class UnreadableArchive(Exception):
    """The archive is not unpacked; the message says why."""


class _TooLarge(UnreadableArchive):
    """A member breaks the limits."""


def is_zip(name: str) -> bool:
    """Return whether a file is named like a zip, in upper or lower case."""
    return os.path.splitext(name)[1].lower() == ".zip"


def is_code_or_zip(name: str) -> bool:
    """Return whether a file is named like Python, a notebook or a zip, in upper or lower case."""
    return os.path.splitext(name)[1].lower() in (*CODE, ".zip")


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
        with _GuardedReader(stream, limits) as guarded, ZipFile(guarded) as opened:
            guarded.release()
            _Unpacking(opened, into, notes, limits, part_notes).run()
    except NotOpened as error:
        raise UnreadableArchive(f"the archive {error}") from None
    except ZIP_ERRORS as error:
        reason = printable_text(str(error)) or "it is damaged"
        raise UnreadableArchive(f"the archive cannot be read: {reason}") from None


class _GuardedReader(BufferedReader):
    """The bytes of a zip, whose list of members is measured when `zipfile` asks for it.

    Measuring these very bytes leaves no room for an archive that has two lists, one for us and one
    for `zipfile`. Until the reader is released, it refuses a list that would take long to parse.
    """

    def __init__(self, stream: BufferedReader, limits: ArchiveLimits) -> None:
        super().__init__(stream.detach())
        self._limits: ArchiveLimits | None = limits

    def release(self) -> None:
        """Stop measuring: the list has been read."""
        self._limits = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes; raise `UnreadableArchive` if they are too long a list."""
        if self._limits is None:
            return super().read(size)
        most = self._limits.listing
        data = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise UnreadableArchive("the archive's list of files is too long")
        _measure(data, self._limits)
        return data


def _measure(listing: bytes, limits: ArchiveLimits) -> None:
    """Raise `UnreadableArchive` if a zip's list names too many members, or describes one at length.

    The number in the header of the list is not used: `zipfile` reads to the end of the list.
    """
    at = members = 0
    while listing.startswith(LISTED, at) and at + LISTED_BYTES <= len(listing):
        name, extra, comment = struct.unpack_from("<3H", listing, at + 28)
        at += LISTED_BYTES + name + extra + comment
        members += 1
        if members > limits.members:
            raise UnreadableArchive(f"the archive holds more than {limits.members} files")
        if extra > MAX_EXTRA:
            raise UnreadableArchive("the archive's list of files has too long entries")


class _Unpacking:
    """The unpacking of one archive."""

    def __init__(
        self,
        opened: ZipFile,
        into: Path,
        notes: list[str],
        limits: ArchiveLimits,
        part_notes: dict[str, list[str]] | None,
    ) -> None:
        self._opened, self._into, self._limits = opened, into, limits
        self._notes, self._part_notes = notes, {} if part_notes is None else part_notes
        self._wanted = list(_wanted(opened.infolist(), limits))
        self._depth = _depth_of_parts(path for _, path in self._wanted)
        self._room, self._used = limits.unpacked, Counter[tuple[str, ...]]()

    def run(self) -> None:
        """Write every wanted member that keeps to the limits."""
        refused = self._refused_parts()
        for member, path in self._wanted:
            if self._part(path) in refused:
                continue
            if reason := _unsafe_reason(member, path, self._limits):
                self._leave_out(path, reason)
            else:
                self._unpack(member, path)

    def _unpack(self, member: ZipInfo, path: PurePosixPath) -> None:
        limits, part = self._limits, self._part(path)
        here = min(self._room, limits.part_unpacked - self._used[part])
        try:
            data = _read(self._opened, member, min(here, limits.member))
        except (_TooLarge, *ZIP_ERRORS) as error:
            if limits.strict or self._room < limits.member:
                raise
            self._leave_out(path, f"cannot be used ({printable_text(str(error))})")
            # Reading it has cost up to this much, so it counts against the limits.
            cost = min(here, limits.member, SMALL + MAX_RATIO * member.compress_size)
        else:
            cost = len(data)
            if reason := _write(self._into / path, data):
                self._leave_out(path, reason)
        self._room -= cost
        self._used[part] += cost

    def _refused_parts(self) -> set[tuple[str, ...]]:
        """Leave out the parts with too many members; return them."""
        most = self._limits.part_members
        counts = Counter(self._part(path) for _, path in self._wanted)
        refused = {part for part, count in counts.items() if count > most}
        for part in refused:
            self._leave_out(PurePosixPath(*part), f"holds more than {most} files", is_part=True)
        return refused

    def _part(self, path: PurePosixPath) -> tuple[str, ...]:
        return path.parts[: self._depth]

    def _leave_out(self, path: PurePosixPath, why: str, *, is_part: bool = False) -> None:
        """Add a note on a member or on a part; the folder of the part stays, so it is graded."""
        note = left_out(printable_text(str(path)), why)
        self._notes.append(note)
        part = PurePosixPath(*self._part(path))
        is_folder = is_part or len(path.parts) > self._depth
        if not self._limits.strict and is_folder and _stays_inside(part):
            self._part_notes.setdefault(str(part), []).append(note)
            with contextlib.suppress(OSError, ValueError):  # a name that no folder can have
                (self._into / part).mkdir(parents=True, exist_ok=True)


def _wanted(
    members: Iterable[ZipInfo], limits: ArchiveLimits
) -> Iterator[tuple[ZipInfo, PurePosixPath]]:
    """Yield the members that are files and have one of the wanted suffixes."""
    for member in members:
        path = PurePosixPath(member.filename)
        is_wanted = not limits.suffixes or path.suffix in (*limits.suffixes, *ARCHIVES)
        if path.parts and not member.is_dir() and is_wanted:
            yield member, path


def _depth_of_parts(paths: Iterable[PurePosixPath]) -> int:
    """Return how many names of a path tell the student: 2 if one folder wraps all files, else 1."""
    tops = {path.parts[0] for path in paths} - {MAC_FOLDER}
    return 2 if len(tops) == 1 else 1


def _stays_inside(path: PurePosixPath) -> bool:
    is_plain = not path.is_absolute() and ".." not in path.parts and "\\" not in str(path)
    return is_plain and ":" not in path.parts[0]


def _unsafe_reason(member: ZipInfo, path: PurePosixPath, limits: ArchiveLimits) -> str:
    """Return why a member must not be unpacked; empty if it may be."""
    if limits.suffixes and path.suffix in ARCHIVES:
        return "is an archive in an archive"
    if "\\" in member.filename or not _stays_inside(path):
        return "points outside the archive"
    if len(path.parts) > limits.depth:
        return f"is more than {limits.depth} folders deep"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link" if kind == stat.S_IFLNK else "is not a regular file"
    if member.compress_type not in METHODS:
        return "uses an unsupported compression method"
    return "is encrypted" if member.flag_bits & 1 else ""


def _read(opened: ZipFile, member: ZipInfo, room: int) -> bytes:
    """Return a member's bytes; raise `_TooLarge` if they are too many, whatever its header says."""
    with opened.open(member) as stream:
        data = stream.read(room + 1)
    if len(data) > room:
        size = "more bytes than the limit allows"
    elif len(data) > max(SMALL, MAX_RATIO * member.compress_size):
        size = f"{len(data) // 1024} KiB, which looks like a zip bomb"
    else:
        return data
    raise _TooLarge(f"{printable_text(member.filename)} unpacks to {size}")


def _write(file: Path, data: bytes) -> str:
    """Write a new file; return why that is impossible, or an empty string."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as stream:
            stream.write(data)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise UnreadableArchive("there is not enough disk space to unpack it") from None
        reason = getattr(error, "strerror", None) or str(error)
        return f"cannot be written ({printable_text(reason)})"
    return ""
