"""Members of an archive, as any format describes them, and the reasons not to unpack one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

# On Windows, anything before a colon may lead out of the folder; elsewhere it is a plain name.
DRIVE = re.compile(r".*:" if sys.platform == "win32" else "[A-Za-z]:", re.DOTALL)
MAX_RATIO = 200  # unpacked to packed bytes, for members larger than SMALL
SMALL = 64 * 1024


class UnreadableArchive(Exception):
    """The archive is not unpacked; the message says why."""


class TooLarge(UnreadableArchive):
    """A member breaks the limits, or all members together do."""


@dataclass(frozen=True)
class PackedFile:
    """A file in an archive: its path, its packed size, and why it must not be unpacked, if so.

    `read(n)` returns at most its first `n` bytes.
    """

    path: PurePosixPath
    packed: int
    refusal: str
    read: Callable[[int], bytes]


def member_paths(names: Iterable[str]) -> Iterator[PurePosixPath]:
    """Yield the path for each name in an archive.

    An archive made on Windows may separate folders by backslashes. If any name has a slash, a
    backslash is part of a file's name: it leads into no folder, and becomes `_` in the path.
    """
    names = list(names)
    instead = "_" if any("/" in name for name in names) else "/"
    return (PurePosixPath(name.replace("\\", instead)) for name in names)


def stays_inside(path: PurePosixPath) -> bool:
    """Return whether a member's path stays inside the archive's folder."""
    is_plain = not path.is_absolute() and ".." not in path.parts
    return is_plain and not DRIVE.match(path.parts[0])


def read_within(member: PackedFile, room: int) -> bytes:
    """Return a member's bytes; raise `TooLarge` if there are too many, whatever the header says."""
    data = member.read(room + 1)
    if len(data) > room:
        raise TooLarge("unpacks to more bytes than the limit allows")
    if len(data) > max(SMALL, MAX_RATIO * member.packed):
        raise TooLarge(f"unpacks to {len(data) // 1024} KiB, which looks like a zip bomb")
    return data
