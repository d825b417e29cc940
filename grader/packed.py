"""Members of an archive, as its format describes them, and why an archive is not unpacked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

MAX_RATIO = 200  # unpacked to packed bytes, for members larger than SMALL
SMALL = 64 * 1024


class UnreadableArchive(Exception):
    """The archive is not unpacked; the message says why."""


class TooLarge(UnreadableArchive):
    """A member breaks the limits, or all of them together."""


@dataclass(frozen=True)
class PackedFile:
    """A file in an archive: where it belongs, its packed size, and why it must not be unpacked.

    `read` returns its first bytes, so many at most.
    """

    path: PurePosixPath
    packed: int
    refusal: str
    read: Callable[[int], bytes]


def member_paths(names: Iterable[str]) -> Iterator[PurePosixPath]:
    """Yield the paths that the names in an archive mean.

    Windows may separate folders by backslashes. Beside a name with a slash, a backslash is a sign
    that somebody put into a file's name: it leads into no folder, and stands as `_` in the path.
    """
    names = list(names)
    instead = "_" if any("/" in name for name in names) else "/"
    return (PurePosixPath(name.replace("\\", instead)) for name in names)
