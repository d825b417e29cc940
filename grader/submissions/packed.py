"""Members of an archive, as its format describes them, and why an archive is not unpacked."""

from __future__ import annotations

from collections.abc import Callable
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


def member_path(name: str) -> PurePosixPath:
    """Return the path that a name in an archive means; Windows separates folders by backslashes."""
    return PurePosixPath(name.replace("\\", "/"))
