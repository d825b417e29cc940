"""What may be opened of a submission: regular files of its own folder, and nothing else.

Every file and folder of a student is opened here, one name of its path after the other, each
relative to the folder that was opened before it, and none of them through a link. So no link leads
out of the folder `within`, whenever it was made. Whether a file may be read is then decided by
what has been opened, not by what had that name a moment before.

Windows opens nothing relative to a folder that is open. There, each name is looked at before the
file is opened, which is enough for a student's own work.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Literal

MAX_ENTRIES = 10_000  # files and folders that are looked at in one submission
KIB, MIB = 1 << 10, 1 << 20
if sys.platform == "win32":
    _FILE = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
else:
    # A pipe is opened without waiting for its writer, and a terminal never becomes our own.
    _FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    _FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    _ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # is not read
IS_A_LINK, NOT_REGULAR = "is a link", "is not a regular file"
HAS_NO_NAME = "has no name that can be opened"
# What operating systems, editors and git add to a folder; nobody hands in under such a name.
CLUTTER = {
    *("__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN", "__pycache__"),
    *(".DS_Store", ".localized", ".directory", ".fseventsd", ".Spotlight-V100", ".Trashes"),
    *(".git", ".gitignore", ".gitattributes", ".gitkeep", ".gitmodules", ".github", ".hg", ".svn"),
    *(".idea", ".vscode", ".ipynb_checkpoints", ".venv", ".cache"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".TemporaryItems"),
}

_linkless_root: Path | None = None  # below it, nothing is ever opened through a link


def is_clutter(name: str) -> bool:
    """Return whether nobody hands in a file or folder of this name: a tool has left it there."""
    return name in CLUTTER or name.startswith("._")


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
    def suffix(self) -> str:
        """The ending of its name in lower case; making a path for that takes ten times as long."""
        return os.path.splitext(self.name)[1].lower()

    @property
    def stem(self) -> str:
        """Its name without the suffix."""
        return os.path.splitext(self.name)[0]

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
        if reason := _refusal_of(found, is_given=path == within):
            raise NotOpened(reason)
        if most is not None and found.st_size > most:
            raise NotOpened(f"is larger than {_size(most)}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path, within: Path, most: int) -> bytes:
    """Return the bytes of a file that `open_file` opens, which may grow meanwhile."""
    with open_file(path, within, most) as stream:
        # Asking for `most` bytes would allocate so many.
        data = stream.read(os.fstat(stream.fileno()).st_size + 1)
        data += stream.read(most + 1 - len(data)) if len(data) <= most else b""
    if len(data) > most:
        raise NotOpened(f"is larger than {_size(most)}")
    return data


def refusal(path: Path, within: Path) -> str | None:
    """Return why `open_file` refuses a file; empty if it does not, None if there is no such file.

    Nothing is opened, so the file may be another one later: this chooses which file to read, and
    `open_file` decides. An error of the system is no reason here, because the reader reports it.
    """
    is_given = path == within
    try:
        if not is_given and _is_through_link(path.parent, within):
            return IS_A_LINK
        found = os.stat(path, follow_symlinks=is_given)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""
    except ValueError:
        return HAS_NO_NAME
    return _refusal_of(found, is_given=is_given)


def _refusal_of(found: os.stat_result, *, is_given: bool) -> str:
    """Return why a file must not be read; a file that was given itself may have several names."""
    if stat.S_ISLNK(found.st_mode):
        return IS_A_LINK
    if not stat.S_ISREG(found.st_mode):
        return NOT_REGULAR
    return "is a hard link (hand in a copy)" if found.st_nlink > 1 and not is_given else ""


def follow_no_link_below(root: Path) -> None:
    """Open nothing through a link below `root`, from now on until this process ends.

    That is for a process that may read all of a class: `within` is then the folder of a student,
    which could become a link to another's at any time.
    """
    global _linkless_root
    _linkless_root = root


class OwnFolder:
    """The folder of one submission, which lists a limited number of files and folders in all."""

    def __init__(self, within: Path, most: int = MAX_ENTRIES) -> None:
        self.within = within
        self._most, self._left = most, most
        self._listed: dict[Path, list[Entry]] = {}

    def entries(self, folder: Path) -> list[Entry]:
        """Return what is in a folder, by name; raise `NotOpened` if it is too much or a link."""
        if folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder]

    @property
    def listed(self) -> list[Entry]:
        """Everything in the folders that were listed so far."""
        return [entry for entries in self._listed.values() for entry in entries]

    def _list(self, folder: Path) -> list[Entry]:
        try:
            with _listable(folder, self.within) as place, os.scandir(place) as entries:
                listed = islice(entries, self._left + 1)
                found = [Entry(folder, one.name, _kind(one)) for one in listed]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        self._left -= len(found)
        if self._left < 0:
            raise NotOpened(f"holds more than {self._most} files and folders")
        return sorted(found, key=lambda entry: entry.name)


@contextlib.contextmanager
def _listable(folder: Path, within: Path) -> Iterator[int | Path]:
    """Yield what lists a folder that is reached from `within` without following a link."""
    if sys.platform == "win32":
        _refuse_links(folder, within)
        yield folder
    else:
        descriptor = _open(folder, within, _FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _open(path: Path, within: Path, flags: int) -> int:
    """Return a descriptor of `path`, which is reached from `within` without following a link."""
    if _linkless_root is not None and _is_in(path, _linkless_root):
        within = _linkless_root
    try:
        if path == within:
            return os.open(path, flags)
        if sys.platform == "win32":
            _refuse_links(path, within)
            return os.open(path, flags)
        return _open_below(within, _names_below(path, within), flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or _is_through_link(path, within):
            raise NotOpened(IS_A_LINK) from None  # it could lead to the work of somebody else
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
            raise NotOpened(NOT_REGULAR) from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    except ValueError:
        raise NotOpened(HAS_NO_NAME) from None


def _refuse_links(path: Path, within: Path) -> None:
    """Raise `NotOpened` if a name on the way is a link, or leads out of the folder."""
    _names_below(path, within)
    if _is_through_link(path, within):
        raise NotOpened(IS_A_LINK)


def _open_below(within: Path, names: Sequence[str], flags: int) -> int:
    """Return a descriptor of what is reached by the names, each a name in the one before."""
    descriptor = os.open(within, _ON_THE_WAY)
    try:
        for name in names[:-1]:
            inner = os.open(name, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return os.open(names[-1], flags, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _names_below(path: Path, within: Path) -> tuple[str, ...]:
    """Return the names that lead from `within` to `path`; raise `ValueError` if none do."""
    if not _is_in(path, within):
        raise ValueError(f"{path} is not in {within}")
    names = path.parts[len(within.parts) :]
    if ".." in names:
        raise NotOpened("points outside its folder")
    return names


def _is_in(path: Path, within: Path) -> bool:
    above = within.parts
    return path.parts[: len(above)] == above


def _is_through_link(path: Path, within: Path) -> bool:
    """Return whether a name on the way is a link; where a folder is expected, no error says so.

    This only chooses the words of a refusal, or the file that is then opened without links.
    """
    names = _names_below(path, within)
    return any(
        os.path.islink(os.path.join(within, *names[:count])) for count in range(1, len(names) + 1)
    )


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
