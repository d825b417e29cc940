"""Files in trees that others may change: submissions, checkouts, hand-outs, `.grader/` in a copy.

This module reaches every file and folder of such a tree name by name: it opens each name of the
path relative to the folder opened before it, and never through a link. So no link leads out of the
folder `within`, even if it is made in the meantime. Whether a file may be read is decided by the
open file, not by the file that had its name a moment before. A written file replaces the old one
in one step, so nothing is written through a link or into a pipe, and an interrupted write leaves
the old file or the new one.

If a path is `within` itself, the grader's user has named it: it may be a link.

Windows cannot open a file relative to an open folder. There, each name is checked before the file
is opened, which is enough for a student's own work.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
if sys.platform == "win32":
    _FILE = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
    _NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_BINARY | os.O_NOINHERIT
else:
    # So that a pipe opens without waiting for its writer, and a terminal never becomes our own.
    _FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    _NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    _FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    _ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # is not read
IS_A_LINK, NOT_REGULAR = "is a link", "is not a regular file"
HAS_NO_NAME = "has no name that can be opened"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
UNFINISHED = re.compile(r"\.grader-(\d{1,10})-[0-9a-f]{16}(\.\w+)?")  # a draft of a process

_linkless_root: Path | None = None  # below it, nothing is ever opened through a link


class NotOpened(Exception):
    """A file or folder must not be opened; the message continues its name, such as "is a link"."""


# --- reading --------------------------------------------------------------------------------------


def open_file(path: Path, within: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file of at most `most` bytes that has one name, in the folder `within`.

    If `path` is `within`, the grader's user has named the file: it may be a link. Raises
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
    """Return the bytes of a file that `open_file` opens; it may grow meanwhile."""
    with open_file(path, within, most) as stream:
        # In pieces, because a read of `most` bytes would allocate that much at once.
        data = stream.read(os.fstat(stream.fileno()).st_size + 1)
        data += stream.read(most + 1 - len(data)) if len(data) <= most else b""
    if len(data) > most:
        raise NotOpened(f"is larger than {_size(most)}")
    return data


def refusal(path: Path, within: Path) -> str | None:
    """Return why `open_file` refuses a file; empty if it does not, None if there is no such file.

    Nothing is opened, so another file may have the name later: this function only helps to choose
    a file, and `open_file` decides. A system error is not a reason here, because the reader
    reports it.
    """
    is_given = path == within
    try:
        if not is_given and link_on_the_way(path.parent, within):
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
    """Return why a file must not be read; a file that the user named may have several names."""
    if stat.S_ISLNK(found.st_mode):
        return IS_A_LINK
    if not stat.S_ISREG(found.st_mode):
        return NOT_REGULAR
    return "is a hard link (make a copy)" if found.st_nlink > 1 and not is_given else ""


def follow_no_link_below(root: Path) -> None:
    """Open nothing through a link below `root`, from now on until this process ends.

    For a process that may read a whole class: there, `within` is a student's folder, which could
    become a link to another student's at any time.
    """
    global _linkless_root
    _linkless_root = root


@contextlib.contextmanager
def listable(folder: Path, within: Path) -> Iterator[int | Path]:
    """Yield a path or descriptor for listing a folder, reached from `within` through no link."""
    if sys.platform == "win32":
        _refuse_links(folder, within)
        yield folder
    else:
        descriptor = _open(folder, within, _FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


# --- writing --------------------------------------------------------------------------------------


def write_file(path: Path, within: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file in the folder `within` in one step, and make missing folders.

    Anything with its name is replaced, except a folder; a replaced file's mode is kept. Only the
    owner may read a file that is `private`. When this returns, the file is on the disk. Raises
    `NotOpened` if the path leads through a link, and `OSError` if the file cannot be written.
    """
    with _explained(path, within):
        if path == within:
            raise NotOpened(HAS_NO_NAME)
        within.mkdir(parents=True, exist_ok=True)
        with _folder_of(path, within, PRIVATE_FOLDER if private else 0o777) as folder:
            folder.replace(content, PRIVATE_FILE if private else None)


def remove_file(path: Path, within: Path) -> None:
    """Remove a file or a link in the folder `within`, if there is one; raises like `write_file`."""
    absent = contextlib.suppress(FileNotFoundError)
    with _explained(path, within), absent, _folder_of(path, within) as folder:
        folder.unlink(folder.name)


def remove_drafts(folder: Path, within: Path) -> None:
    """Remove the unfinished files of killed commands from a folder, if there is one."""
    with contextlib.suppress(FileNotFoundError), listable(folder, within) as place:
        with os.scandir(place) as entries:
            left = [entry.name for entry in entries if UNFINISHED.fullmatch(entry.name)]
        for name in left:
            remove_file(folder / name, within)


def draft_name(path: Path) -> str:
    """Return a name for the draft of a file, which nobody can foresee."""
    suffix = path.suffix if re.fullmatch(r"\.\w+", path.suffix) else ""
    return f".grader-{os.getpid()}-{os.urandom(8).hex()}{suffix}"


@dataclass(frozen=True)
class _OpenFolder:
    """The folder of a file: held open, except on Windows, so that no link can take its place."""

    path: Path  # of the file
    descriptor: int | None = None

    @property
    def name(self) -> str:
        """The file's name, as the system calls below take it."""
        return self.place(self.path.name)

    def place(self, name: str) -> str:
        """Return the path by which a system call finds a file of this folder."""
        return name if self.descriptor is not None else str(self.path.with_name(name))

    def at(self, *keys: str) -> dict[str, int]:
        """Return the arguments that make a system call relative to this folder."""
        return {} if self.descriptor is None else dict.fromkeys(keys, self.descriptor)

    def unlink(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(name, **self.at("dir_fd"))

    def replace(self, content: bytes, mode: int | None) -> None:
        """Replace the file; without a mode, the new one has that of the old."""
        draft = self.place(draft_name(self.path))
        try:
            descriptor = os.open(draft, _NEW_FILE, mode or 0o666, **self.at("dir_fd"))
            with os.fdopen(descriptor, "wb") as file:
                if sys.platform != "win32" and (mode := mode or self._mode()) is not None:
                    with contextlib.suppress(OSError):  # some file systems have no modes
                        os.fchmod(descriptor, mode)
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            os.replace(draft, self.name, **self.at("src_dir_fd", "dst_dir_fd"))
        except BaseException:
            with contextlib.suppress(OSError):
                self.unlink(draft)
            raise
        self._sync()

    def _mode(self) -> int | None:
        try:
            found = os.stat(self.name, follow_symlinks=False, **self.at("dir_fd"))
        except FileNotFoundError:
            return None
        return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else None

    def _sync(self) -> None:
        """Wait until the names in the folder are on the disk, where that is possible."""
        if sys.platform != "win32" and self.descriptor is not None:
            with contextlib.suppress(OSError):
                readable = os.open(".", _FOLDER, dir_fd=self.descriptor)
                try:
                    os.fsync(readable)
                finally:
                    os.close(readable)


@contextlib.contextmanager
def _folder_of(path: Path, within: Path, mode: int | None = None) -> Iterator[_OpenFolder]:
    """Open the folder of a file; with a `mode`, make it and its parents if they are missing."""
    names = _names_below(path, within)
    if sys.platform == "win32":
        for count in range(1, len(names)):
            folder = within.joinpath(*names[:count])
            _refuse_links(folder, within)
            if mode is not None:
                folder.mkdir(mode, exist_ok=True)
        yield _OpenFolder(path)
        return
    descriptor = os.open(within, _ON_THE_WAY)
    try:
        for name in names[:-1]:
            if mode is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=descriptor)
            descriptor = _step(descriptor, name)
        yield _OpenFolder(path, descriptor)
    finally:
        os.close(descriptor)


# --- the way to a file ----------------------------------------------------------------------------


def link_on_the_way(path: Path, within: Path) -> Path | None:
    """Return the first name on the way that is a link, if any; the system's errors do not name it.

    Its result only chooses the words of a refusal, or a file that is then opened without links.
    """
    names = _names_below(path, within)
    places = (Path(within, *names[:count]) for count in range(1, len(names) + 1))
    return next((place for place in places if _is_link(place)), None)


def _is_link(place: Path) -> bool:
    """Return whether a file or folder is a link, or a junction (a link to a folder on Windows)."""
    is_junction = getattr(os.path, "isjunction", os.path.islink)  # from Python 3.12 on
    return os.path.islink(place) or bool(is_junction(place))


def _open(path: Path, within: Path, flags: int) -> int:
    """Return a descriptor of `path`, which is reached from `within` without following a link."""
    if _linkless_root is not None and _is_in(path, _linkless_root):
        within = _linkless_root
    with _explained(path, within):
        if path == within:
            return os.open(path, flags)
        if sys.platform == "win32":
            _refuse_links(path, within)
            return os.open(path, flags)
        return _open_below(within, _names_below(path, within), flags | os.O_NOFOLLOW)


@contextlib.contextmanager
def _explained(path: Path, within: Path) -> Iterator[None]:
    """Raise `NotOpened` for the system's errors on links and pipes; other errors get the path."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or _is_through_link(path, within):
            raise NotOpened(IS_A_LINK) from None  # a hard link could lead to somebody else's work
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
            raise NotOpened(NOT_REGULAR) from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    except ValueError:
        raise NotOpened(HAS_NO_NAME) from None


def _refuse_links(path: Path, within: Path) -> None:
    """Raise `NotOpened` if a name on the way is a link, or leads out of the folder."""
    if _is_through_link(path, within):
        raise NotOpened(IS_A_LINK)


def _is_through_link(path: Path, within: Path) -> bool:
    return link_on_the_way(path, within) is not None


def _open_below(within: Path, names: Sequence[str], flags: int) -> int:
    """Return a descriptor of the file that the names lead to, each inside the one before."""
    descriptor = os.open(within, _ON_THE_WAY)
    try:
        for name in names[:-1]:
            descriptor = _step(descriptor, name)
        return os.open(names[-1], flags, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _step(descriptor: int, name: str) -> int:
    """Return a descriptor of a folder inside an open one, and close the outer one."""
    inner = os.open(name, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=descriptor)
    os.close(descriptor)
    return inner


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


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count % MIB == 0 else f"{count // KIB} KiB"
