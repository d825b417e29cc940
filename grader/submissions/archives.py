"""Opening a zip that a stranger made: the files that are wanted, within limits, nothing outside.

A member that is a link, lies outside or is encrypted is left out and named. A student's archive
that is too large, too full or unpacks to far more than it is, is not opened at all; of a whole
class's, which must not fall with one student's file, only that member is left out.
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
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from grader.report import clean

MIB, GIB = 1 << 20, 1 << 30
MAX_ARCHIVE_BYTES = 16 * MIB
MAX_MEMBERS = 2000
MAX_MEMBER_BYTES = 8 * MIB
MAX_UNPACKED_BYTES = 32 * MIB
MAX_RATIO = 200  # unpacked to packed bytes, of what is larger than SMALL
SMALL = 64 * 1024
MAX_DEPTH = 12  # folders in folders
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others unpack without a limit
TAKEN = (".py", ".ipynb")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".xz", ".bz2")
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError),
    *(NotImplementedError, RuntimeError, ValueError, UnicodeError),
)


@dataclass(frozen=True)
class Limits:
    """What an archive may hold: sizes in bytes, and `taken`, the suffixes of files that are wanted.

    An empty `taken` wants every file, and archives in the archive stay archives. `strict` refuses
    the archive for one member that breaks the limits; otherwise that member is left out.
    """

    archive: int = MAX_ARCHIVE_BYTES
    members: int = MAX_MEMBERS
    member: int = MAX_MEMBER_BYTES
    unpacked: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH
    taken: tuple[str, ...] = TAKEN
    strict: bool = True


STUDENT = Limits()
CLASS = Limits(8 * GIB, 200_000, 64 * MIB, 8 * GIB, 2 * MAX_DEPTH, taken=(), strict=False)


class Unreadable(Exception):
    """The archive is not opened; the message says why."""


class _TooLarge(Unreadable):
    """One member breaks the limits."""


@contextlib.contextmanager
def unpacked(archive: Path, notes: list[str], limits: Limits = STUDENT) -> Iterator[Path]:
    """A folder with the archive's files, while the block lasts. May raise `Unreadable`."""
    with TemporaryDirectory(prefix="grader-zip-") as name:
        unpack(archive, Path(name), notes, limits)
        yield Path(name)


def unpack(archive: Path, into: Path, notes: list[str], limits: Limits = STUDENT) -> None:
    """Write the archive's wanted files beneath `into`; what is left out joins `notes`."""
    try:
        if archive.stat().st_size > limits.archive:
            raise Unreadable(f"the archive is larger than {limits.archive // MIB} MiB")
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            if len(members) > limits.members:
                raise Unreadable(f"the archive holds more than {limits.members} files")
            _unpack_members(opened, members, into, notes, limits)
    except BROKEN as error:
        raise Unreadable(f"the archive cannot be read: {_shown(error) or 'it is broken'}") from None


def _unpack_members(
    opened: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    into: Path,
    notes: list[str],
    limits: Limits,
) -> None:
    room = limits.unpacked
    for member in members:
        path = PurePosixPath(member.filename)
        if not path.parts or member.is_dir() or not _is_wanted(path, limits):
            continue
        if reason := _unwelcome(member, path, limits):
            notes.append(f"{_shown(path)} {reason} and was left out")
            continue
        try:
            data = _read(opened, member, min(room, limits.member))
        except (_TooLarge, *BROKEN) as error:
            if limits.strict or room < limits.member:
                raise
            notes.append(f"{_shown(path)} is not usable ({_shown(error)}) and was left out")
            room -= min(limits.member, SMALL + MAX_RATIO * member.compress_size)  # what it may cost
            continue
        room -= len(data)
        _write(into / path, data, notes)


def _is_wanted(path: PurePosixPath, limits: Limits) -> bool:
    return not limits.taken or path.suffix in (*limits.taken, *ARCHIVES)


def _unwelcome(member: zipfile.ZipInfo, path: PurePosixPath, limits: Limits) -> str:
    """Why a member is not taken, or nothing."""
    if limits.taken and path.suffix in ARCHIVES:
        return "is an archive in an archive"
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]:
        return "points outside of the archive"
    if len(path.parts) > limits.depth:
        return f"lies more than {limits.depth} folders deep"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link" if kind == stat.S_IFLNK else "is no regular file"
    if member.compress_type not in METHODS:
        return "is compressed in an unusual way"
    return "is encrypted" if member.flag_bits & 1 else ""


def _read(opened: zipfile.ZipFile, member: zipfile.ZipInfo, room: int) -> bytes:
    """A member's bytes, as long as there is room; what it claims of its size counts for nothing."""
    with opened.open(member) as stream:
        data = stream.read(room + 1)
    if len(data) > room:
        raise _TooLarge(f"{_shown(member.filename)} unpacks to more than there is room for")
    if len(data) > max(SMALL, MAX_RATIO * member.compress_size):
        raise _TooLarge(f"{_shown(member.filename)} unpacks to {len(data) // 1024} KiB; a bomb?")
    return data


def _write(place: Path, data: bytes, notes: list[str]) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise Unreadable("there is no space left to unpack it") from None
        reason = getattr(error, "strerror", None) or str(error)
        notes.append(f"{_shown(place.name)} cannot be written ({reason}) and was left out")


def _shown(text: object) -> str:
    return clean(str(text).encode("utf-8", "backslashreplace").decode())[:200]
