"""What may be opened of a submission: regular files of its own folder, and nothing else.

Every file and folder of a student is opened here, one name of its path after the other, each
relative to the folder that was opened before it, and none of them through a link. So no link leads
out of the folder `within`, whenever it was made. Whether a file may be read is then decided by
what has been opened, not by what had that name a moment before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Literal

MAX_ENTRIES = 10_000  # files and folders that are looked at in one submission
KIB, MIB = 1 << 10, 1 << 20
# A pipe is opened without waiting for its writer, and a terminal never becomes our own.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # is not read


class NotOpened(Exception):
    """A file or folder must not be opened; the message continues its name: "is a link"."""


@dataclass(frozen=True)
class Entry:
    """A file or folder as its folder lists it; links are not followed."""

    folder: Path
    name: str
    kind: Literal["file", "folder", "link", "other"]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and not a link to one."""
        return self.kind == "folder"


def open_file(path: Path, within: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file of at most `most` bytes that has one name, in the folder `within`.

    If `path` is `within`, whoever uses the grader has named the file: it may be a link. Raises
    `NotOpened` if the file must not be read, and `OSError` if it is missing or cannot be read.
    """
    descriptor = _open(path, within, _FILE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotOpened("is not a regular file")
        if found.st_nlink > 1 and path != within:
            raise NotOpened("is a hard link (hand in a copy)")
        if most is not None and found.st_size > most:
            raise NotOpened(f"is larger than {_size(most)}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path, within: Path, most: int) -> bytes:
    """Return the bytes of a file that `open_file` opens, which may grow meanwhile."""
    with open_file(path, within, most) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise NotOpened(f"is larger than {_size(most)}")
    return data


def refusal(path: Path, within: Path) -> str | None:
    """Return why a file must not be opened; empty if it may be, None if there is no such file.

    Whoever reads a file that cannot be read says why, so that is no reason here.
    """
    try:
        open_file(path, within).close()
    except NotOpened as error:
        return str(error)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""
    return ""


class OwnFolder:
    """The folder of one submission, which lists a limited number of files and folders in all."""

    def __init__(self, within: Path, most: int | None = MAX_ENTRIES) -> None:
        self.within = within
        self._most, self._left = most, most
        self._listed: dict[Path, list[Entry]] = {}

    def entries(self, folder: Path) -> list[Entry]:
        """Return what is in a folder, by name; raise `NotOpened` if it is too much or a link."""
        if folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder]

    def _list(self, folder: Path) -> list[Entry]:
        descriptor = _open(folder, self.within, _FOLDER)
        try:
            with os.scandir(descriptor) as entries:
                most = None if self._left is None else self._left + 1
                found = [Entry(folder, one.name, _kind(one)) for one in islice(entries, most)]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        finally:
            os.close(descriptor)
        if self._left is not None:
            self._left -= len(found)
            if self._left < 0:
                raise NotOpened(f"holds more than {self._most} files and folders")
        return sorted(found, key=lambda entry: entry.name)


def _open(path: Path, within: Path, flags: int) -> int:
    """Return a descriptor of `path`, which is reached from `within` without following a link."""
    try:
        if path == within:
            return os.open(path, flags)
        with _holder(path, within) as folder:
            return os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or _is_through_link(path, within):
            raise NotOpened("is a link") from None  # it could lead to the work of somebody else
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
            raise NotOpened("is not a regular file") from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    except ValueError:
        raise NotOpened("has no name that can be opened") from None


@contextlib.contextmanager
def _holder(path: Path, within: Path) -> Iterator[int]:
    """Yield a descriptor of the folder that holds `path`."""
    names = path.relative_to(within).parts[:-1]
    if ".." in (*names, path.name):
        raise NotOpened("points outside its folder")
    descriptor = os.open(within, _ON_THE_WAY)
    try:
        for name in names:
            inner = os.open(name, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _is_through_link(path: Path, within: Path) -> bool:
    """Return whether a name on the way is a link; where a folder is expected, no error says so.

    This only chooses the words of a refusal that has already happened.
    """
    below = [path, *path.parents][: len(path.relative_to(within).parts)]
    return any(map(os.path.islink, below))


def _kind(entry: os.DirEntry[str]) -> Literal["file", "folder", "link", "other"]:
    with contextlib.suppress(OSError):  # it was removed meanwhile
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        if entry.is_file(follow_symlinks=False):
            return "file"
    return "other"


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count % MIB == 0 else f"{count // KIB} KiB"
