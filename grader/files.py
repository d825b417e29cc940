"""Files written whole, for their owner alone, and safe from a power cut; zips of them.

These files hold data about students. So only the owner may read them and enter new folders,
whatever the umask; a folder that exists keeps its mode.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import io
import os
import re
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Literal

from grader.trees import NotOpened, draft_name, write_file

EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can store
UNIX, REGULAR = 3, 0o100000  # file modes in a zip are Unix's, and only plain files are written
# The errors that Python raises for a damaged zip.
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError)
STATE = ".grader"  # the folder beside exercises/ where commands keep their state
FILE_MODE, FOLDER_MODE = 0o600, 0o700
LIBC = None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Draft:
    """A finished file that waits to replace `path`."""

    fresh: Path
    path: Path

    def put(self) -> None:
        """Replace the file; `sync` the draft before and the folder afterwards."""
        self.fresh.replace(self.path)

    def discard(self) -> None:
        """Remove the draft, if it has not replaced the file."""
        with contextlib.suppress(OSError):  # the folder may be gone
            self.fresh.unlink()


@contextlib.contextmanager
def writing_whole(path: Path, later: list[Draft] | None = None) -> Iterator[TextIOWrapper]:
    """Open a file for writing that replaces `path` in one step when the block ends.

    A reader sees either the old file or the new one, even after a power cut. If the block fails,
    the old file stays. With `later`, the caller puts the draft in its place, so that many files
    are synced together.
    """
    make_folder(path.parent)
    draft = Draft(path.with_name(draft_name(path)), path)
    try:
        with open_private(draft.fresh, "x") as file:
            yield file
        if later is None:
            sync(draft.fresh)
            draft.put()
            sync(path.parent)
        else:
            later.append(draft)
    except BaseException:
        draft.discard()
        raise


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folder: Path, files: Iterable[Path]) -> None:
    """Wait until these files of a folder are on the disk.

    One request for the whole disk is much faster than one for each file. If the system has no such
    request, or it fails, each file is synced, and its own error says what is wrong.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        is_done = LIBC is not None and hasattr(LIBC, "syncfs") and LIBC.syncfs(descriptor) == 0
    finally:
        os.close(descriptor)
    for file in () if is_done else files:
        sync(file)


@contextlib.contextmanager
def putting_all(folder: Path) -> Iterator[list[Draft]]:
    """Collect drafts of a folder, and put all of them in their places when the block ends.

    They are synced together. If the block fails, the old files stay.
    """
    drafts: list[Draft] = []
    try:
        yield drafts
        if drafts:
            sync_files(folder, (draft.fresh for draft in drafts))
            for draft in drafts:
                draft.put()
            sync(folder)
    finally:
        for draft in drafts:
            draft.discard()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one step."""
    with writing_whole(path) as file:
        if isinstance(content, bytes):
            file.buffer.write(content)
        else:
            file.write(content)


# A shell's names for its own output; a user who gives one wants the stream, not a new file.
OUTPUTS = re.compile(r"/dev/(stdout|stderr|null|tty|fd/\d+)|/proc/self/fd/\d+")


def put_file(path: Path, content: str, *, below: Iterable[Path] = ()) -> None:
    """Write a file, replacing anything that has its name, and follow no link.

    In a folder that somebody else has filled, the name may belong to a link, a pipe, or another
    file. Raises `OSError` if it is a folder, or if the path leads through a link in one of the
    folders `below`. The file keeps its mode.
    """
    data = content.encode("utf-8", "replace")
    if OUTPUTS.fullmatch(str(path)):
        path.write_bytes(data)
        return
    if link := _link_on_the_way(path.absolute(), list(below)):
        raise OSError(errno.ELOOP, f"{link} is a link")
    path.absolute().parent.stat()  # not created: a missing folder is probably mistyped
    try:
        write_file(path.absolute(), path.absolute().parent, data)
    except NotOpened as error:
        raise OSError(errno.ELOOP, f"{path} {error}") from None


def make_way(path: Path) -> None:
    """Remove anything that has this name, even a folder that cannot be emptied; follow no link."""
    if not os.path.lexists(path):
        return
    aside = path.with_name(draft_name(path))
    path.rename(aside)  # renaming a folder needs no permission for its contents
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink()


def _link_on_the_way(path: Path, roots: list[Path]) -> Path | None:
    """Return the first link on the way to a path in one of the folders; None if there is none."""
    there = [root for root in roots if os.path.exists(root)]
    for start in filter(os.path.exists, path.parents):
        if any(start.samefile(root) for root in there):
            place, depth = start, 0
            for name in path.parts[len(start.parts) : -1]:
                place, depth = place / name, depth + (-1 if name == ".." else 1)
                if depth < 0:  # `..` leads out of the folder again
                    break
                if place.is_symlink():
                    return place
    return None


def open_private(path: Path, mode: Literal["a", "x"]) -> TextIOWrapper:
    """Open a text file to append to; if it is new, only its owner may read it."""
    new = os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    flags = os.O_CREAT | os.O_WRONLY | (os.O_APPEND if mode == "a" else new)
    flags |= getattr(os, "O_BINARY", 0)  # else Windows would change the ends of lines
    is_new = not path.exists()
    binary: Any = os.fdopen(os.open(path, flags, FILE_MODE), "ab" if mode == "a" else "wb")
    file = TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="")
    if is_new and sys.platform != "win32":
        os.fchmod(file.fileno(), FILE_MODE)
    return file


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents; only the owner may enter them."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
        folder.chmod(FOLDER_MODE)


def read_bounded(path: Path, most: int) -> bytes:
    """Return the bytes of a file; raise `OSError` if there are more than `most`."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    return data


def fingerprint(path: Path) -> list[int | str] | None:
    """Return the size and the SHA-256 of a file's contents; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return [size, hashlib.file_digest(file, "sha256").hexdigest()]
    except OSError:
        return None


def fingerprint_of(text: str) -> list[int | str]:
    """Return the `fingerprint` that a file with this text has."""
    data = text.encode("utf-8", "replace")
    return [len(data), hashlib.sha256(data).hexdigest()]


def zipped(
    files: Mapping[str, bytes], programs: frozenset[str] = frozenset(), level: int | None = None
) -> bytes:
    """Return a zip of files, by their paths in it; `programs` may be executed."""
    buffer = io.BytesIO()
    write_zip(buffer, files.items(), 0o644, programs, level)
    return buffer.getvalue()


def write_zip(
    stream: IO[bytes],
    members: Iterable[tuple[str, bytes]],
    mode: int = FILE_MODE,
    programs: frozenset[str] = frozenset(),
    level: int | None = None,  # of compression, up to 9
) -> None:
    """Write a zip of files, given as paths and bytes, which may be made one at a time.

    The same files give the same bytes at any time and on any machine.
    """
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members:
            member = zipfile.ZipInfo(name, EARLIEST)
            member.create_system = UNIX
            member.external_attr = (REGULAR | (0o755 if name in programs else mode)) << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED, level)
