"""Which folders only the user can change, and whether a folder is the one that was there before."""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from grader.files import LIBC

PARTS = ("reference", "exercises")  # of a course: all in them has to be the user's
ACCESS_LIST = "system.posix_acl_access"
# From linux/stat.h, the same on every architecture: what was found out, and where a birth stands.
STATX_SIZE, STATX_BTIME, AT_FDCWD = 256, 0x800, -100
MASK, BIRTH, BIRTH_AT = struct.Struct("=I"), struct.Struct("=qI"), 80


def is_private(root: Path) -> bool:
    """Return whether only the user can change a course, and which folder has its path.

    All that is in the folders of the course is the user's own, or root's, and may be written by
    nobody else. A link is not: what it leads to may be anybody's.
    """
    if sys.platform == "win32":
        return True
    try:
        return all(map(_keeps_its_names, root.parents)) and all(map(_is_own, _inside(root)))
    except OSError:
        return False


def identity_of(folder: Path) -> str:
    """Return what tells a folder from every other one that has had, or will have, its path.

    A number may be given again when a folder is removed, so its birth is told too, where the system
    knows it. Where it does not, the number of the device is: it may change when a disk is mounted.
    """
    found = folder.stat()
    if birth := _birth_of(folder, found):
        return f"{found.st_ino} born {birth}"
    return f"{found.st_ino} on {found.st_dev}"


def _birth_of(folder: Path, found: os.stat_result) -> str:
    """Return when a folder was made; empty if that is not known."""
    if sys.platform == "win32":
        return str(found.st_ctime_ns)
    if sys.platform != "linux":
        return str(getattr(found, "st_birthtime", ""))
    room = ctypes.create_string_buffer(STATX_SIZE)
    statx = getattr(LIBC, "statx", None)  # which os.stat does not call before Python 3.15
    if statx is None or statx(AT_FDCWD, os.fsencode(folder), 0, STATX_BTIME, room):
        return ""
    (told,), (seconds, nanoseconds) = MASK.unpack_from(room), BIRTH.unpack_from(room, BIRTH_AT)
    return f"{seconds}.{nanoseconds:09}" if told & STATX_BTIME else ""


def _keeps_its_names(folder: Path) -> bool:
    """Return whether nobody else can put another folder in the place of one in this folder."""
    found = folder.stat()
    is_users = found.st_uid in (0, os.geteuid())
    is_private_group = found.st_gid in (found.st_uid, 0)
    is_open = found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and not is_private_group
    )
    return is_users and (not is_open or bool(found.st_mode & stat.S_ISVTX))


def _inside(root: Path) -> Iterator[Path]:
    """Yield a folder and everything in the parts of a course in it."""
    yield root
    for top in (root / part for part in PARTS):
        if os.path.lexists(top):
            yield top
            for folder, folders, files in os.walk(top, onerror=_raise):
                yield from (Path(folder, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


def _is_own(path: Path) -> bool:
    """Return whether a file or a folder can be written by its owner alone: the user, or root."""
    found = path.lstat()
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return False
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
        return False
    return not found.st_mode & stat.S_IWGRP or (
        found.st_gid == _group_of_the_user() and not _has_access_list(path)
    )


@functools.cache
def _group_of_the_user() -> int | None:
    """Return the group that most systems make for each user alone; None if the user has none."""
    if sys.platform == "win32" or os.geteuid() == 0:
        return None
    import grp  # noqa: PLC0415  (not on Windows)
    import pwd  # noqa: PLC0415

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return None
    is_alone = group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    return group.gr_gid if is_alone else None


def _has_access_list(path: Path) -> bool:
    """Return whether the bits of the group stand for others, too, to whom an access list allows."""
    return sys.platform != "linux" or ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
