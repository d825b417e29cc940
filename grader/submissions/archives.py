"""Unpacking untrusted zips: only wanted files, within limits, and only into the target folder.

A member that is a link, is encrypted or points outside is left out, with a note. A student's
archive that breaks a limit is refused as a whole. In the archive of a class only the member that
breaks the limit is left out, so that one student's file does not stop all the others.
"""

from __future__ import annotations

import contextlib
import errno
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile, ZipInfo

from grader.sandbox.cells import NOTEBOOK
from grader.submissions.notes import left_out, printable_text

CODE = (".py", NOTEBOOK)  # suffixes of the files that can be graded
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".xz", ".bz2")
ZIP_AGAIN = "zip the exercise files again, or hand in the folder itself"
MIB, GIB = 1 << 20, 1 << 30
MAX_MEMBERS = 2000
MAX_UNPACKED_BYTES = 32 * MIB
MAX_RATIO = 200  # unpacked to packed bytes, for members larger than SMALL
SMALL = 64 * 1024
MAX_DEPTH = 12  # nested folders
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others unpack without a memory limit
DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError)
ZIP_ERRORS = (*DAMAGED, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of an archive: sizes in bytes, numbers of files and of nested folders.

    Only files with one of the `suffixes` are unpacked. If there are none, every file is, and an
    archive inside the archive is a file like any other. `strict` refuses the whole archive if one
    member breaks a limit; otherwise only that member is left out.
    """

    archive: int = 16 * MIB
    members: int = MAX_MEMBERS
    member: int = 8 * MIB
    unpacked: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH
    suffixes: tuple[str, ...] = CODE
    strict: bool = True


STUDENT = ArchiveLimits()
CLASS = ArchiveLimits(8 * GIB, 200_000, 64 * MIB, 8 * GIB, 2 * MAX_DEPTH, (), strict=False)


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
def unpacked(archive: Path, notes: list[str], limits: ArchiveLimits = STUDENT) -> Iterator[Path]:
    """Yield a temporary folder with the archive's files; see `unpack`."""
    with TemporaryDirectory(prefix="grader-zip-") as name:
        unpack(archive, Path(name), notes, limits)
        yield Path(name)


def unpack(archive: Path, into: Path, notes: list[str], limits: ArchiveLimits = STUDENT) -> None:
    """Write the wanted files, and a note on each one left out. Raises `UnreadableArchive`."""
    try:
        if archive.stat().st_size > limits.archive:
            raise UnreadableArchive(f"the archive is larger than {limits.archive // MIB} MiB")
        with ZipFile(archive) as opened:
            if len(opened.infolist()) > limits.members:
                raise UnreadableArchive(f"the archive holds more than {limits.members} files")
            _unpack_wanted(opened, into, notes, limits)
    except ZIP_ERRORS as error:
        reason = printable_text(str(error)) or "it is damaged"
        raise UnreadableArchive(f"the archive cannot be read: {reason}") from None


def _unpack_wanted(opened: ZipFile, into: Path, notes: list[str], limits: ArchiveLimits) -> None:
    room = limits.unpacked
    for member in opened.infolist():
        path = PurePosixPath(member.filename)
        is_wanted = not limits.suffixes or path.suffix in (*limits.suffixes, *ARCHIVES)
        if not path.parts or member.is_dir() or not is_wanted:
            continue
        name = printable_text(str(path))
        if reason := _unsafe_reason(member, path, limits):
            notes.append(left_out(name, reason))
            continue
        try:
            data = _read(opened, member, min(room, limits.member))
        except (_TooLarge, *ZIP_ERRORS) as error:
            if limits.strict or room < limits.member:
                raise
            notes.append(left_out(name, f"cannot be used ({printable_text(str(error))})"))
            # Reading it has cost up to this much, so it counts against the limit.
            room -= min(limits.member, SMALL + MAX_RATIO * member.compress_size)
            continue
        room -= len(data)
        _write(into / path, data, notes)


def _unsafe_reason(member: ZipInfo, path: PurePosixPath, limits: ArchiveLimits) -> str:
    """Return why a member must not be unpacked; empty if it may be."""
    if limits.suffixes and path.suffix in ARCHIVES:
        return "is an archive in an archive"
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]:
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
