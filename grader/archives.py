"""Opening a zip that a stranger made: exercise files alone, within limits, nothing outside.

A member that is a link, lies outside, is encrypted or is an archive itself is left out and named.
An archive that is too large, too full or unpacks to far more than it is, is not opened at all.
"""

from __future__ import annotations

import contextlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from grader.records import clean

MIB = 1 << 20
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


class Unreadable(Exception):
    """The archive is not opened; the message says why."""


@contextlib.contextmanager
def unpacked(archive: Path, notes: list[str]) -> Iterator[Path]:
    """A folder with the archive's exercise files, while the block lasts. May raise `Unreadable`."""
    with TemporaryDirectory(prefix="grader-zip-") as name:
        unpack(archive, Path(name), notes)
        yield Path(name)


def unpack(archive: Path, into: Path, notes: list[str]) -> None:
    """Write the archive's exercise files beneath `into`; what is left out joins `notes`."""
    try:
        if archive.stat().st_size > MAX_ARCHIVE_BYTES:
            raise Unreadable(f"the archive is larger than {MAX_ARCHIVE_BYTES // MIB} MiB")
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            if len(members) > MAX_MEMBERS:
                raise Unreadable(f"the archive holds more than {MAX_MEMBERS} files")
            room = MAX_UNPACKED_BYTES
            for member in members:
                path = PurePosixPath(member.filename)
                if not member.filename or member.is_dir() or path.suffix not in (*TAKEN, *ARCHIVES):
                    continue
                if reason := _unwelcome(member, path):
                    notes.append(f"{_shown(path)} {reason} and was left out")
                    continue
                data = _read(opened, member, min(room, MAX_MEMBER_BYTES))
                room -= len(data)
                _write(into / path, data, notes)
    except BROKEN as error:
        raise Unreadable(f"the archive cannot be read: {_shown(error) or 'it is broken'}") from None


def _unwelcome(member: zipfile.ZipInfo, path: PurePosixPath) -> str:
    """Why a member is not taken, or nothing."""
    if path.suffix in ARCHIVES:
        return "is an archive in an archive"
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]:
        return "points outside of the archive"
    if len(path.parts) > MAX_DEPTH:
        return f"lies more than {MAX_DEPTH} folders deep"
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
        raise Unreadable(f"{_shown(member.filename)} unpacks to more than there is room for")
    if len(data) > max(SMALL, MAX_RATIO * member.compress_size):
        raise Unreadable(f"{_shown(member.filename)} unpacks to {len(data) // 1024} KiB; a bomb?")
    return data


def _write(place: Path, data: bytes, notes: list[str]) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        notes.append(f"{_shown(place.name)} was left out: {reason}")


def _shown(text: object) -> str:
    return clean(str(text).encode("utf-8", "backslashreplace").decode())[:200]
