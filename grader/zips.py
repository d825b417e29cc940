"""Reading the lists of zips that strangers made, within limits."""

from __future__ import annotations

import contextlib
import functools
import stat
import struct
from collections.abc import Iterator
from io import BufferedReader
from pathlib import PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from grader.packed import PackedFile, UnreadableArchive, member_paths

LISTED = b"PK\1\2"  # the first bytes of a member's entry in the list
# The fields after them: the version that unpacks it, flags, sizes, lengths of name, extra fields
# and comment, and its place.
LISTED_AS = struct.Struct("<6xBxH10xLL3H8xL")
LARGE = 0xFFFF_FFFF  # stands for a size or place that is in an extra field
LARGE_EXTRA, NAME_EXTRA = 0x0001, 0x7075  # that field; one with the name in UTF-8
MAX_EXTRA = 1024  # bytes of extra fields of one member; `zipfile` takes quadratic time
NO_EXTRA = 0xFFFF  # the kind of a field that `zipfile` ignores
NEWEST, UTF_8 = 63, 0x800  # the highest version that `zipfile` reads; the flag of names in UTF-8
METHODS = (ZIP_STORED, ZIP_DEFLATED)  # other methods unpack without a memory limit


@contextlib.contextmanager
def zip_members(
    stream: BufferedReader, most_members: int, most_listing: int
) -> Iterator[list[PackedFile]]:
    """Yield the files that a zip lists; `most_listing` is the size of that list in bytes.

    Raises `UnreadableArchive`, and whatever `zipfile` raises for a damaged zip.
    """
    guarded = _GuardedReader(stream, most_members, most_listing)
    with guarded, ZipFile(guarded) as opened:
        guarded.release()
        yield list(_members(opened))


def _members(opened: ZipFile) -> Iterator[PackedFile]:
    infos = opened.infolist()
    seen: dict[PurePosixPath, str] = {}
    for info, path in zip(infos, member_paths(info.filename for info in infos)):
        if not info.filename.endswith(("/", "\\")):
            # A later member with the same name is a newer version, which replaces the earlier one.
            known = seen.setdefault(path, info.filename)
            again = "has the name of another file" if known != info.filename else ""
            reader = functools.partial(_read, opened, info)
            yield PackedFile(path, info.compress_size, _refusal(info) or again, reader)


def _read(opened: ZipFile, info: ZipInfo, most: int) -> bytes:
    with opened.open(info) as stream:
        return stream.read(most)


def _refusal(info: ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link" if kind == stat.S_IFLNK else "is not a regular file"
    if info.compress_type not in METHODS:
        return "uses an unsupported compression method"
    return "is encrypted" if info.flag_bits & 1 else ""


class _GuardedReader(BufferedReader):
    """The bytes of a zip, whose list of members is measured when `zipfile` asks for it.

    Because these very bytes are measured, an archive cannot show one list to us and another one to
    `zipfile`. Until the reader is released, it refuses a list that would take long to parse, and
    repairs entries that would make `zipfile` refuse the whole archive.
    """

    def __init__(self, stream: BufferedReader, most_members: int, most_listing: int) -> None:
        super().__init__(stream.detach())
        self._most_members, self._most_listing = most_members, most_listing
        self._is_measured = True

    def release(self) -> None:
        """Stop measuring: the list has been read."""
        self._is_measured = False

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes; raise `UnreadableArchive` for a list that is too long."""
        if not self._is_measured:
            return super().read(size)
        most = self._most_listing
        data = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise UnreadableArchive("the archive's list of files is too long")
        return _mended(data, self._most_members)


def _mended(listing: bytes, most: int) -> bytes:
    """Return a zip's list without the parts that `zipfile` cannot parse, so it can read the rest.

    The number in the header of the list is not used: `zipfile` reads to the end of the list. Raises
    `UnreadableArchive` if it names too many members.
    """
    mended = bytearray(listing)
    at = members = 0
    while listing.startswith(LISTED, at) and at + LISTED_AS.size <= len(listing):
        version, flags, *sizes, name, extra, comment, place = LISTED_AS.unpack_from(listing, at)
        mended[at + 6] = min(version, NEWEST)
        start = at + LISTED_AS.size
        if flags & UTF_8 and not _is_utf_8(listing[start : start + name]):
            struct.pack_into("<H", mended, at + 8, flags & ~UTF_8)
        start += name
        needs = [sizes[1], sizes[0], place].count(LARGE)
        if extra >= 4 and not _is_sound(listing[start : start + extra], needs):
            struct.pack_into("<HH", mended, start, NO_EXTRA, extra - 4)
        at = start + extra + comment
        members += 1
        if members > most:
            raise UnreadableArchive(f"the archive holds more than {most} files")
    return bytes(mended)


def _is_utf_8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_sound(extra: bytes, needs: int) -> bool:
    """Return whether extra fields are quick to read and hold `needs` numbers of a large member."""
    at = 0
    while len(extra) <= MAX_EXTRA and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        data = extra[at + 4 : at + 4 + length]
        at += 4 + length
        if at > len(extra) or (kind == LARGE_EXTRA and length < 8 * needs):
            return False
        if kind == NAME_EXTRA and (length < 5 or not _is_utf_8(data[5:])):
            return False
    return len(extra) <= MAX_EXTRA
