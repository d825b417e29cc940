"""Unpacking untrusted zips: only wanted files, within limits, and only into the target folder.

A member that is a link, is encrypted or points outside is left out, with a note. A student's
archive that breaks a limit is refused as a whole. In the archive of a class the limits apply to
each student's part, and only the member or the part that breaks one is left out, so that one
student's files do not stop all the others.
"""

from __future__ import annotations

import contextlib
import errno
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile, ZipInfo

from grader.sandbox.cells import NOTEBOOK
from grader.submissions.notes import left_out, printable_text
from grader.submissions.opening import MAX_ENTRIES, NotOpened, open_file

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


def is_zip(path: PurePath) -> bool:
    """Return whether a file is named like a zip, in upper or lower case."""
    return path.suffix.lower() == ".zip"


def is_code_or_zip(path: PurePath) -> bool:
    """Return whether a file is named like Python, a notebook or a zip, in upper or lower case."""
    return path.suffix.lower() in (*CODE, ".zip")


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
) -> None:
    """Write the wanted files, and a note on each one left out. Raises `UnreadableArchive`.

    The archive is opened in the folder `within` (see `open_file`), or else in its own folder.
    """
    try:
        stream = open_file(archive, within or archive.parent, limits.archive)
        with _GuardedReader(stream, limits) as guarded, ZipFile(guarded) as opened:
            guarded.release()
            _unpack_wanted(opened, into, notes, limits)
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


def _unpack_wanted(opened: ZipFile, into: Path, notes: list[str], limits: ArchiveLimits) -> None:
    wanted = list(_wanted(opened.infolist(), limits))
    depth = _depth_of_parts(path for _, path in wanted)
    refused = _refused_parts((path.parts[:depth] for _, path in wanted), into, notes, limits)
    room, used = limits.unpacked, Counter[tuple[str, ...]]()
    for member, path in wanted:
        part = path.parts[:depth]
        if part in refused:
            continue
        name = printable_text(str(path))
        if reason := _unsafe_reason(member, path, limits):
            notes.append(left_out(name, reason))
            continue
        here = min(room, limits.part_unpacked - used[part])
        try:
            data = _read(opened, member, min(here, limits.member))
        except (_TooLarge, *ZIP_ERRORS) as error:
            if limits.strict or room < limits.member:
                raise
            notes.append(left_out(name, f"cannot be used ({printable_text(str(error))})"))
            # Reading it has cost up to this much, so it counts against the limits.
            cost = min(here, limits.member, SMALL + MAX_RATIO * member.compress_size)
        else:
            cost = len(data)
            _write(into / path, data, notes)
        room -= cost
        used[part] += cost


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


def _refused_parts(
    parts: Iterable[tuple[str, ...]], into: Path, notes: list[str], limits: ArchiveLimits
) -> set[tuple[str, ...]]:
    """Return the parts with too many members; each stays an empty folder, so that it is graded."""
    counts = Counter(parts)
    refused = {part for part, count in counts.items() if count > limits.part_members}
    for part in refused:
        path = PurePosixPath(*part)
        notes.append(
            left_out(printable_text(str(path)), f"holds more than {limits.part_members} files")
        )
        if _stays_inside(path):
            with contextlib.suppress(OSError, ValueError):  # a name that no folder can have
                (into / path).mkdir(parents=True)
    return refused


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


def _write(file: Path, data: bytes, notes: list[str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as stream:
            stream.write(data)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise UnreadableArchive("there is not enough disk space to unpack it") from None
        reason = getattr(error, "strerror", None) or str(error)
        notes.append(left_out(printable_text(file.name), f"cannot be written ({reason})"))
