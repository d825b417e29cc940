"""Reading zips that strangers made: what they list, within limits."""

from __future__ import annotations

import contextlib
import stat
import struct
from collections.abc import Iterator
from io import BufferedReader
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from grader.submissions.packed import PackedFile, UnreadableArchive, member_path

MAX_EXTRA = 1024  # bytes of extra fields of one member; `zipfile` needs their square in time
LISTED, LISTED_BYTES = b"PK\1\2", 46  # how a member in the list begins, and its fixed length
METHODS = (ZIP_STORED, ZIP_DEFLATED)  # the others unpack without a memory limit


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
        yield [_member(opened, info) for info in opened.infolist() if not _is_folder(info)]


def _is_folder(info: ZipInfo) -> bool:
    return info.filename.endswith(("/", "\\"))


def _member(opened: ZipFile, info: ZipInfo) -> PackedFile:
    def read(most: int) -> bytes:
        with opened.open(info) as stream:
            return stream.read(most)

    return PackedFile(member_path(info.filename), info.compress_size, _refusal(info), read)


def _refusal(info: ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link" if kind == stat.S_IFLNK else "is not a regular file"
    if info.compress_type not in METHODS:
        return "uses an unsupported compression method"
    return "is encrypted" if info.flag_bits & 1 else ""


class _GuardedReader(BufferedReader):
    """The bytes of a zip, whose list of members is measured when `zipfile` asks for it.

    Measuring these very bytes leaves no room for an archive that has two lists, one for us and one
    for `zipfile`. Until the reader is released, it refuses a list that would take long to parse.
    """

    def __init__(self, stream: BufferedReader, most_members: int, most_listing: int) -> None:
        super().__init__(stream.detach())
        self._most_members, self._most_listing = most_members, most_listing
        self._is_measured = True

    def release(self) -> None:
        """Stop measuring: the list has been read."""
        self._is_measured = False

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes; raise `UnreadableArchive` if they are too long a list."""
        if not self._is_measured:
            return super().read(size)
        most = self._most_listing
        data = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise UnreadableArchive("the archive's list of files is too long")
        _measure(data, self._most_members)
        return data


def _measure(listing: bytes, most: int) -> None:
    """Raise `UnreadableArchive` if a zip's list names too many members, or describes one at length.

    The number in the header of the list is not used: `zipfile` reads to the end of the list.
    """
    at = members = 0
    while listing.startswith(LISTED, at) and at + LISTED_BYTES <= len(listing):
        name, extra, comment = struct.unpack_from("<3H", listing, at + 28)
        at += LISTED_BYTES + name + extra + comment
        members += 1
        if members > most:
            raise UnreadableArchive(f"the archive holds more than {most} files")
        if extra > MAX_EXTRA:
            raise UnreadableArchive("the archive's list of files has too long entries")
