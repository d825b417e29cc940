"""Reads the content of strangers' tars, compressed by gzip or not, within limits."""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import os
import tarfile
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from grader.packed import (
    MAX_RATIO,
    SMALL,
    PackedFile,
    TooLarge,
    UnreadableArchive,
    member_paths,
)
from grader.submissions.notes import printable_text

GZIP = b"\x1f\x8b"  # the first bytes of a file compressed by gzip


@contextlib.contextmanager
def tar_members(
    stream: BufferedReader, most_members: int, most_bytes: int
) -> Iterator[list[PackedFile]]:
    """Yield the files in a tar. Raises `UnreadableArchive`, also in the block.

    No more than `most_bytes` are decompressed, whatever size the tar claims.
    """
    try:
        packed = os.fstat(stream.fileno()).st_size
        is_gzip = stream.peek(2).startswith(GZIP)
        inner: Any = gzip.GzipFile(fileobj=stream) if is_gzip else stream
        if is_gzip:
            most = min(most_bytes, SMALL + MAX_RATIO * packed)
            limited: Any = _Limited(inner, most, f"unpacks to more than {most >> 10} KiB")
        else:
            limited = _Limited(inner, packed, "is cut off")
        with stream, tarfile.TarFile(fileobj=limited, encoding="utf-8") as opened:
            yield list(_members(opened, most_members))
    except (UnreadableArchive, OSError, MemoryError):
        raise
    except Exception as error:  # `tarfile` raises any error for unexpected data
        reason = printable_text(str(error)) or "it is damaged"
        raise UnreadableArchive(f"the archive cannot be read: {reason}") from None


class _Limited:
    """A stream that ends after its first `most` bytes."""

    def __init__(self, stream: Any, most: int, says: str) -> None:
        self._stream, self._most, self._says = stream, most, says

    def tell(self) -> int:
        """Return the position."""
        return int(self._stream.tell())

    def seek(self, at: int) -> int:
        """Go to a position, by decompressing everything before it."""
        self._require(at)
        return int(self._stream.seek(at))

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, without allocating the size that a header claims."""
        left = self._most - self.tell()
        data: bytes = self._stream.read(left + 1 if size < 0 else min(size, left + 1))
        self._require(self.tell())
        return data

    def _require(self, at: int) -> None:
        if at > self._most:
            raise TooLarge(f"the archive {self._says}")


def _members(opened: tarfile.TarFile, most: int) -> Iterator[PackedFile]:
    infos = list(itertools.islice(opened, most + 1))
    if len(infos) > most:
        raise UnreadableArchive(f"the archive holds more than {most} files")
    for info, path in zip(infos, member_paths(info.name for info in infos)):
        if not info.isdir():
            reader = functools.partial(_read, opened, info)
            yield PackedFile(path, info.size, _refusal(info), reader)


def _read(opened: tarfile.TarFile, info: tarfile.TarInfo, most: int) -> bytes:
    stream = opened.extractfile(info)
    return stream.read(most) if stream else b""


def _refusal(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return "is a link"
    return "" if info.isreg() and not info.issparse() else "is not a regular file"
