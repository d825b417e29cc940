"""Tells which folders only the user can change, and whether a folder is still the same one."""

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

PARTS = ("reference", "exercises")  # the parts of a course: everything in them has to be the user's
ACCESS_LIST = "system.posix_acl_access"
# From linux/stat.h, the same on every architecture: the flag and the place of a file's birth time.
STATX_SIZE, STATX_BTIME, AT_FDCWD = 256, 0x800, -100
MASK, BIRTH, BIRTH_AT = struct.Struct("=I"), struct.Struct("=qI"), 80


def is_private(root: Path) -> bool:
    """Return whether only the user can change a course or put another folder in its place.

    Everything in the folders of the course must belong to the user or to root, and nobody else may
    write to it. A link is refused, because its target may belong to anybody.
    """
    if sys.platform == "win32":
        return True
    try:
        return all(map(_keeps_its_names, root.parents)) and all(map(_is_own, _inside(root)))
    except OSError:
        return False


def identity_of(folder: Path) -> str:
    """Return an identity that no other folder with this path has, had or will have.

    An inode number may be used again after a folder is removed, so the identity has the birth time
    as well. If the system does not know that, it has the number of the device, which may change
    when a disk is mounted.
    """
    found = folder.stat()
    if birth := _birth_of(folder, found):
        return f"{found.st_ino} born {birth}"
    return f"{found.st_ino} on {found.st_dev}"


def _birth_of(folder: Path, found: os.stat_result) -> str:
    """Return the birth time of a folder; empty if it is unknown."""
    if sys.platform == "win32":
        return str(found.st_ctime_ns)
    if sys.platform != "linux":
        return str(getattr(found, "st_birthtime", ""))
    room = ctypes.create_string_buffer(STATX_SIZE)
    statx = getattr(LIBC, "statx", None)  # os.stat does not call it before Python 3.15
    if statx is None or statx(AT_FDCWD, os.fsencode(folder), 0, STATX_BTIME, room):
        return ""
    (told,), (seconds, nanoseconds) = MASK.unpack_from(room), BIRTH.unpack_from(room, BIRTH_AT)
    return f"{seconds}.{nanoseconds:09}" if told & STATX_BTIME else ""


def _keeps_its_names(folder: Path) -> bool:
    """Return whether nobody else can replace a folder in this folder."""
    found = folder.stat()
    is_users = found.st_uid in (0, os.geteuid())
    is_private_group = found.st_gid in (found.st_uid, 0)
    is_open = found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and not is_private_group
    )
    return is_users and (not is_open or bool(found.st_mode & stat.S_ISVTX))


def _inside(root: Path) -> Iterator[Path]:
    """Yield a course's folder and everything in its parts."""
    yield root
    for top in (root / part for part in PARTS):
        if os.path.lexists(top):
            yield top
            for folder, folders, files in os.walk(top, onerror=_raise):
                yield from (Path(folder, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


def _is_own(path: Path) -> bool:
    """Return whether only the owner, the user or root, can write to a file or folder."""
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
    """Return the user's private group, which most systems make; None if the user has none."""
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
    """Return whether an access list lets more users write than the bits of the group show."""
    return sys.platform != "linux" or ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
